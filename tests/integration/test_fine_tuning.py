"""A new run starts from the weights of another one: its folder, a checkpoint, or its SavedModel."""

import concurrent.futures
import json
import os

import numpy as np
import pytest
from shell import Shell

from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import starting_point
from keras_transformer.training import checkpoint

RUN = "runs/reverse_words_reversed"
SAVED = "saved_models/reverse_words_reversed"
FEW = ["train", "--flagfile=toy.flags", "--mixed_precision=float32", "--seed=3"]
FEW += ["--max_steps=10", "--validation_sentences=0", "--norelease"]


@pytest.fixture(scope="module")
def tuned(toy, warm, shared, tmp_path_factory):
    """By starting point: the `Shell` of ten steps from there, and the completed process."""
    starts = {
        "run": [f"--init_from={toy.folder / RUN}"],
        "another vocabulary": [f"--init_from={toy.folder / SAVED}", "--vocabulary_size=299"],
    }
    shells = {name: Shell(tmp_path_factory.mktemp("tuned"), warm) for name in starts}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        calls = {name: pool.submit(shells[name], *FEW, *flags) for name, flags in starts.items()}
        answers = {name: (shells[name], call.result()) for name, call in calls.items()}
    for shell in shells.values():
        shared.add(shell.folder)
    return answers


def first_validation(shell):
    return json.loads(
        (shell.folder / RUN / "history.jsonl").read_text(encoding="utf-8").splitlines()[0]
    )


@pytest.mark.parametrize("start", ["run", "another vocabulary"])
def test_ten_steps_of_fine_tuning_beat_a_whole_epoch_from_scratch(toy, tuned, start):
    shell, called = tuned[start]
    assert called.returncode == 0, called.stderr.decode()
    fresh = first_validation(toy)
    learned = json.loads((toy.folder / RUN / "history.jsonl").read_text().splitlines()[-1])
    assert first_validation(shell)["step"] == 10 < fresh["step"]
    reached = [
        validated["val_cross_entropy"] for validated in (learned, first_validation(shell), fresh)
    ]
    assert reached[2] > reached[0] + 1
    # With another vocabulary some pieces are new, and some words have other pieces than before.
    assert reached[1] < (
        sum(reached[::2]) / 2 if start == "another vocabulary" else reached[0] + 0.1
    ), reached


def test_pieces_that_both_vocabularies_have_are_counted(toy, tuned):
    same, fewer = (tuned[start][1].stdout.decode() for start in ("run", "another vocabulary"))
    assert ": 300 pieces keep their embeddings, 0 are new" in same
    assert " pieces keep their embeddings, " in fewer
    assert ": 300 pieces" not in fewer
    assert b"pieces keep" not in toy.trained.stdout


def test_a_saved_model_has_the_averaged_weights_of_its_run_to_the_last_bit(toy):
    folder = RunFolder(toy.folder / RUN)
    averaged = checkpoint.weights_of(folder.averaged)
    for path in (folder.path, toy.folder / SAVED, toy.folder / SAVED / "1"):
        weights, vocabulary = starting_point(path)
        assert weights.keys() == averaged.keys()
        assert all(np.array_equal(weights[name], averaged[name]) for name in averaged)
        assert vocabulary.fingerprint == folder.read_description()["vocabulary"]["fingerprint"]
    last, _ = starting_point(checkpoint.checkpoints(folder.checkpoints)[-1])
    assert not all(np.array_equal(last[name], averaged[name]) for name in averaged)
