"""The recurrent and the convolutional model through all commands: training, resumption, and
translation by the run and by its SavedModel.
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


def test_its_saved_model_translates_scores_and_aligns_like_the_run(shell, lines):
    live = Translator.load(shell.folder / "runs/it", beam_size=4, num_hypotheses=2)
    saved = Translator.load(shell.folder / "saved_models/it", beam_size=4, num_hypotheses=2)
    rows = zip(saved.translate_in_detail(lines), live.translate_in_detail(lines), strict=True)
    for exported, expected in rows:
        for hypothesis, reference in zip(exported, expected, strict=True):
            assert hypothesis.text == reference.text
            assert hypothesis.score == pytest.approx(reference.score, abs=1e-4)
    references = [" ".join(reversed(line.split())) for line in lines]
    rows = zip(saved.score(lines, references), live.score(lines, references), strict=True)
    for scores, expected in rows:
        assert scores == pytest.approx(expected, abs=1e-4)
    assert saved.align(lines, references) == live.align(lines, references)


def test_its_export_names_the_architecture_and_its_run_the_cost(shell):
    version = shell.folder / "saved_models/it/1"
    described = json.loads((version / "model.json").read_text())["hyperparameters"]
    assert f"--architecture={described['architecture']}" in shell.training
    cost = json.loads((shell.folder / "runs/it/cost.json").read_text())
    assert cost["counted"] > 0
    [readme] = version.rglob("README.md")
    assert "A Transformer" not in readme.read_text()


def test_pictures_of_heads_need_a_transformer(shell):
    pytest.importorskip("matplotlib")
    answer = shell("visualize", "--picture=positions", "--model=runs/it", "--output=a.png")
    assert answer.returncode == 1
    assert "needs a Transformer's heads and positions" in answer.stderr.decode()
