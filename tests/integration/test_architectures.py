"""The recurrent and the convolutional model through all commands: trained, gone on with, and
translated by the run and by its SavedModel.
"""

import json
import random

import pytest
from shell import Shell

from keras_transformer.inference.translator import Translator

pytestmark = pytest.mark.slow

OF = {
    "recurrent": ("--num_layers=1",),
    "convolutional": ("--num_layers=3", "--positions=learned", "--max_positions=40"),
}
TRAIN = (
    *("train", "--corpus=reverse", "--source_language=words", "--target_language=reversed"),
    *("--vocabulary_size=300", "--d_model=64", "--dropout=0", "--label_smoothing=0"),
    *("--max_train_length=32", "--batch_tokens=512", "--warmup_steps=200"),
    *("--learning_rate_scale=0.5", "--validation_sentences=0", "--average_over=epochs"),
    *("--keep_checkpoints=2", "--average_checkpoints=2", "--mixed_precision=float32", "--report"),
    "--model_dir=runs/it",
)


@pytest.fixture(scope="module", params=OF)
def shell(request, tmp_path_factory, warm, shared):
    """A `Shell` in the folder of a run that was interrupted and went on."""
    shell = Shell(tmp_path_factory.mktemp(request.param), warm)
    shell.training = (*TRAIN, f"--architecture={request.param}", *OF[request.param])
    shell.run(*shell.training, "--max_epochs=3", "--norelease")
    assert b"going on from step" in shell.run(*shell.training, "--max_epochs=8").stdout
    shared.add(shell.folder)
    return shell


@pytest.fixture(scope="module")
def lines():
    draw = random.Random(5)
    return [" ".join(draw.choices("abcdefghij", k=draw.randint(2, 6))) for _ in range(40)]


def test_it_learns_to_reverse_words(shell, lines):
    translations = Translator.load(shell.folder / "runs/it").translate(lines)
    right = [
        translation == " ".join(reversed(line.split()))
        for translation, line in zip(translations, lines, strict=True)
    ]
    assert sum(right) > 0.8 * len(lines)


def test_its_savedmodel_gives_what_the_run_gives(shell, lines):
    live = Translator.load(shell.folder / "runs/it", beam_size=4, num_hypotheses=2)
    saved = Translator.load(shell.folder / "saved_models/it", beam_size=4, num_hypotheses=2)
    rows = zip(saved.translate_in_detail(lines), live.translate_in_detail(lines), strict=True)
    for found, expected in rows:
        assert [one.text for one in found] == [one.text for one in expected]
        wanted = pytest.approx([one.score for one in expected], abs=1e-4)
        assert [one.score for one in found] == wanted
    references = [" ".join(reversed(line.split())) for line in lines]
    rows = zip(saved.score(lines, references), live.score(lines, references), strict=True)
    for found, expected in rows:
        assert found == pytest.approx(expected, abs=1e-4)
    assert saved.align(lines, references) == live.align(lines, references)


def test_what_it_is_and_what_it_cost_is_told(shell):
    version = shell.folder / "saved_models/it/1"
    described = json.loads((version / "model.json").read_text())["hyperparameters"]
    assert f"--architecture={described['architecture']}" in shell.training
    cost = json.loads((shell.folder / "runs/it/cost.json").read_text())
    assert cost["counted"] > 0
    [readme] = version.rglob("README.md")
    assert "A Transformer" not in readme.read_text()


def test_another_architecture_does_not_go_on_with_the_run(shell):
    other = [one for one in shell.training if not one.startswith(("--arch", "--max_pos", "--posi"))]
    answer = shell(*other, "--max_epochs=9")
    assert answer.returncode == 1
    assert "architecture was " in answer.stderr.decode()
    assert len(answer.stderr.decode().splitlines()) == 1


def test_pictures_of_heads_need_a_transformer(shell):
    pytest.importorskip("matplotlib")
    answer = shell("visualize", "--picture=positions", "--model=runs/it", "--output=a.png")
    assert answer.returncode == 1
    assert "needs a Transformer's heads and positions" in answer.stderr.decode()
