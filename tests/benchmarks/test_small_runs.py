"""Trainings that tables compare: which weights are scored, and which kept scores are taken."""

import json

import numpy as np
import pytest

from keras_transformer.training import checkpoint


def saved(path):
    progress = np.array('{"step": 2000, "seconds": 1.0}')
    checkpoint.write_archive(path, {"weights/kernel": np.zeros(1), "progress": progress})


def text_in(folder, line="a"):
    folder.mkdir(exist_ok=True)
    for name in ("train.en", "train.de", "val.en", "val.de"):
        (folder / name).write_text(f"{line}\n")
    return folder


def test_the_last_weights_are_those_of_the_end_and_not_of_the_last_minutes(benchmark_of, tmp_path):
    small_runs = benchmark_of("paper.small_runs")
    (tmp_path / "checkpoints").mkdir()
    saved(tmp_path / "averaged.npz")
    saved(checkpoint.path_of(tmp_path / "checkpoints", 1800))
    saved(checkpoint.path_of(tmp_path / "checkpoints", 2000, averaged=False))
    assert small_runs.last_weights(tmp_path).name == "last-000002000.npz"


def test_what_is_scored_are_the_last_weights(benchmark_of, tmp_path, monkeypatch):
    small_runs = benchmark_of("paper.small_runs")
    scored = []

    class Stop(Exception):
        pass

    def load(path, **options):
        scored.append(path)
        raise Stop

    monkeypatch.setattr("keras_transformer.Translator.load", load)
    monkeypatch.setattr(small_runs, "last_weights", lambda folder: folder / "last.npz")
    with pytest.raises(Stop):
        small_runs.score(tmp_path)
    assert scored == [tmp_path / "last.npz"]


def test_a_text_is_told_by_what_is_in_it(benchmark_of, tmp_path):
    text_of = benchmark_of("paper.small_runs").text_of
    assert text_of(text_in(tmp_path / "a")) == text_of(text_in(tmp_path / "b"))
    assert text_of(tmp_path / "a") != text_of(text_in(tmp_path / "c", "another"))


@pytest.mark.parametrize("differs", [None, "text", "arithmetic", "steps", "flags", "batch_tokens"])
def test_kept_scores_of_something_else_are_not_taken(benchmark_of, tmp_path, monkeypatch, differs):
    data = text_in(tmp_path / "data")
    kept = tmp_path / "kept.json"
    small_runs = benchmark_of(
        "paper.small_runs", f"--data_dir={data}", f"--kept={kept}", "--updates=5"
    )
    scores = {**small_runs.asked_of([], "1"), "bleu": 1.0}
    another = {**scores, differs: "another"} if differs else scores
    kept.write_text(json.dumps({"row-1": another}))
    trained = []

    def run_alone(folder, command, core):
        folder.mkdir()
        (folder / "score.json").write_text(json.dumps({**scores, "bleu": 2.0}))

    monkeypatch.setattr(small_runs, "run_alone", run_alone)
    monkeypatch.setattr(small_runs, "train_alone", lambda folder, *_: trained.append(folder))
    found = small_runs.train(tmp_path / "row-1", [], "1", 0)
    assert found["bleu"] == (2.0 if differs else 1.0)
    assert bool(trained) == bool(differs)
