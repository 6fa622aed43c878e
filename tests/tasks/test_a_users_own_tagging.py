"""A task of tagging's kind in one file of a user's: flags of its own, a run, its score and an
export, without a change of the package.
"""

import pathlib
import random
import subprocess
import sys

import pytest
import tensorflow as tf
from checks_here import checks_here
from tasks.capitals import Capitals

from keras_transformer.inference.loading import trained_model
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.run import Run
from keras_transformer.tasks import TRAINING

PROGRAM = pathlib.Path(__file__).with_name("capitals.py")
NAMES = ("Anna", "Berlin", "NATO", "UN", "Carl", "Rome")
WORDS = ("sees", "the", "house", "near", "and", "finds", "a", "door", "of")
SIZES = (
    *("--num_layers=1", "--d_model=16", "--d_ff=32", "--num_heads=2", "--vocabulary_size=300"),
    *("--schedule=constant", "--learning_rate=0.01", "--warmup_steps=5", "--batch_tokens=512"),
    *("--mixed_precision=float32", "--max_epochs=16", "--dropout=0", "--average_checkpoints=1"),
)


def lines(seed, count):
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(NAMES if draw.random() < 0.4 else WORDS) for _ in range(6))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, shared, values_of):
    """The folder of a run, and of its SavedModel."""
    folder = tmp_path_factory.mktemp("capitals")
    for split, count in (("train", 300), ("valid", 20), ("test", 20)):
        text = "\n".join(lines(split, count)) + "\n"
        (folder / f"{split}.en").write_text(text, encoding="utf-8")
    arguments = ("--corpus=lines", f"--data_dir={folder}", "--source_language=en", *SIZES)
    places = (f"--model_dir={folder / 'run'}", f"--export_dir={folder / 'saved'}")
    with checks_here():
        Run(Capitals, values_of(Capitals, *arguments, *places), TRAINING).train()
    shared.add(folder)
    return folder


def test_it_learns_how_words_are_written(whole):
    assert RunFolder(whole / "run").read_scores()["scores"]["accuracy"] > 0.9


def test_its_export_restores_what_the_run_restores(whole):
    texts = ["anna sees the un near rome", "", "the door"]
    exported = tf.saved_model.load(str(whole / "saved" / "1")).signatures["restore"]
    restored = exported(text=tf.constant(texts))["restored"].numpy().tolist()
    module = Capitals.reload(RunFolder(whole / "run"), {})
    assert module.restore(tf.constant(texts))["restored"].numpy().tolist() == restored
    assert restored == [b"Anna sees the UN near Rome", b"", b"the door"]


def test_its_model_is_built_by_its_module(whole):
    run = RunFolder(whole / "run")
    model = trained_model(Capitals.module_class.build, run)
    assert model.hyperparameters.d_model == 16


def test_its_own_option_is_a_flag_that_a_run_keeps(whole, values_of):
    values = values_of(Capitals, "--noacronyms")
    assert Capitals(values).kinds == 2
    assert RunFolder(whole / "run").read_description()["capitals"] == {"acronyms": True}


def test_the_task_stands_in_one_short_file():
    assert len(PROGRAM.read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.slow
def test_its_program_knows_its_flags_and_refuses_others():
    def answer(*arguments):
        command = [sys.executable, str(PROGRAM), "train", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert "--[no]acronyms" in answer("--help=Capitals").stdout
    wrong = answer("--mask_share=0.1")
    assert wrong.returncode == 2
    assert "--mask_share" in wrong.stderr
    assert "Traceback" not in wrong.stderr
