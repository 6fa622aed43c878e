"""When tables reuse the results of trainings and measurements (nothing is trained), and the memory
that the input takes.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from absl import flags

from benchmarks.paper import one_core
from benchmarks.paper.paper_table3 import comparable
from benchmarks.peers.turns import ROOT
from benchmarks.tables import keep_settings
from keras_transformer.runs import run as runs
from keras_transformer.training import checkpoint


# Results of other settings are not reused.
def test_a_folder_with_results_keeps_its_settings(tmp_path):
    folder = tmp_path / "run"
    keep_settings(folder, {"rate": 0.1})
    # The folder does not exist yet: the training failed at a wrong flag.
    keep_settings(folder, {"rate": 0.3})
    folder.mkdir()
    (folder / "score.json").write_text("{}")
    keep_settings(folder, {"rate": 0.3})
    named = r"run was made with rate=0\.3, not 0\.1; seed=None, not 2\. Delete it"
    with pytest.raises(SystemExit, match=named):
        keep_settings(folder, {"rate": 0.1, "seed": 2})


def test_results_of_unknown_settings_are_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "score.json").write_text("{}")
    with pytest.raises(SystemExit, match="unknown settings"):
        keep_settings(tmp_path / "run", {"rate": 0.1})


# Results are stored with the flags that they depend on; nothing is trained here.
def test_layers_that_were_measured_at_other_sizes_are_refused(benchmark_of, tmp_path, monkeypatch):
    table1 = benchmark_of("paper.table1", "--layers=linear", f"--output_dir={tmp_path / 'table1'}")
    measured = {of: {"256": 1.0, "8192": 2.0} for of in ("seconds", "bytes", "layers", "depth")}

    def run(command, check):
        path = pathlib.Path(table1.FOLDER.value) / "linear.json"
        path.parent.mkdir()
        path.write_text(json.dumps(measured))

    monkeypatch.setattr(table1, "subprocess", types.SimpleNamespace(run=run))
    table1.main([])
    table1.main([])
    flags.FLAGS.width = 64
    with pytest.raises(SystemExit, match="was made with width=512, not 64"):
        table1.main([])


# Trainings that tables compare: which weights are scored, and which stored scores are reused.
def saved(path):
    progress = np.array('{"step": 2000, "seconds": 1.0}')
    checkpoint.write_archive(path, {"weights/kernel": np.zeros(1), "progress": progress})


def text_in(folder, line="a"):
    folder.mkdir(exist_ok=True)
    for name in ("train.en", "train.de", "val.en", "val.de"):
        (folder / name).write_text(f"{line}\n")
    return folder


def test_the_weights_that_are_scored_are_the_last_and_not_those_of_the_last_minutes(
    benchmark_of, tmp_path, monkeypatch
):
    small_runs = benchmark_of("paper.small_runs")
    (tmp_path / "checkpoints").mkdir()
    saved(tmp_path / "averaged.npz")
    saved(checkpoint.path_of(tmp_path / "checkpoints", 1800))
    saved(checkpoint.path_of(tmp_path / "checkpoints", 2000, averaged=False))

    def load(path, **options):
        raise InterruptedError(path.name)

    monkeypatch.setattr("keras_transformer.Translator.load", load)
    with pytest.raises(InterruptedError, match=r"^last-000002000\.npz$"):
        small_runs.score(tmp_path)


def test_a_text_is_identified_by_its_content(benchmark_of, tmp_path):
    text_of = benchmark_of("paper.small_runs").text_of
    assert text_of(text_in(tmp_path / "a")) == text_of(text_in(tmp_path / "b"))
    assert text_of(tmp_path / "a") != text_of(text_in(tmp_path / "c", "another"))


@pytest.mark.parametrize("differs", [None, "text", "arithmetic", "steps", "flags", "batch_tokens"])
def test_scores_of_another_training_are_not_reused(benchmark_of, tmp_path, monkeypatch, differs):
    data = text_in(tmp_path / "data")
    scores_file = tmp_path / "scores.json"
    small_runs = benchmark_of(
        "paper.small_runs", f"--data_dir={data}", f"--kept={scores_file}", "--updates=5"
    )
    scores = {**small_runs.settings_of([], "1"), "bleu": 1.0}
    another = {**scores, differs: "another"} if differs else scores
    scores_file.write_text(json.dumps({"row-1": another}))
    trained = []

    monkeypatch.setattr(small_runs, "score", lambda folder: {**scores, "bleu": 2.0})
    monkeypatch.setattr(small_runs, "train_to_the_end", lambda folder, _: trained.append(folder))
    assert small_runs.train(tmp_path / "row-1", [], "1")["bleu"] == (2.0 if differs else 1.0)
    assert bool(trained) == bool(differs)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--no_such_flag", "of .*run-1 failed: see the end of .*run-1.log"),
        ("--help", "was stopped"),
    ],
)
def test_a_training_that_fails_or_stops_is_reported(benchmark_of, tmp_path, flag, message):
    train = benchmark_of("paper.small_runs").train_to_the_end
    with pytest.raises(SystemExit, match=message):
        train(tmp_path / "run-1", [flag])
    assert (tmp_path / "run-1.log").read_text()


# Which stored scores of table 3 are compared.
def scored(**changed):
    same = {"steps": 2000, "text": "a", "batch_tokens": 1024, "arithmetic": "float32"}
    return {**same, "bleu": 1.0, **changed}


@pytest.mark.parametrize(
    "changed",
    [{"steps": 500}, {"text": "b"}, {"batch_tokens": 512}, {"arithmetic": "mixed_bfloat16"}],
)
def test_only_scores_of_equal_updates_are_averaged(changed):
    scores = {"base-1": scored(), "base-2": scored(**changed), "big-1": scored(), "big-2": scored()}
    averaged, left_out = comparable(scores)
    big = [scores["big-1"], scores["big-2"]]
    assert averaged == {"table3/base": [scores["base-1"]], "big": big}
    assert left_out == ["base-2"]


def test_all_seeds_of_equal_updates_are_averaged_and_other_names_left_out():
    scores = {f"a_1_head-{seed}": scored() for seed in (1, 2)}
    assert comparable(scores) == ({"table3/a_1_head": list(scores.values())}, [])
    assert comparable({"recurrent-1": scored()}) == ({}, ["recurrent-1"])
    assert comparable({}) == ({}, [])


@pytest.mark.slow
def test_memory_does_not_grow_with_pairs_that_are_mapped(tmp_path):
    """A control: pairs that are held take 110 bytes each."""
    command = [sys.executable, "-m", "benchmarks.limits.input_memory", f"--folder={tmp_path}"]
    command += ["--pairs=200000,2000000", "--ids=mapped,held"]
    completed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    rows = re.findall(r"^\| [\d,]+ \| (\w+) .* ([\d.]+) \|$", completed.stdout, re.MULTILINE)
    assert [how for how, _ in rows] == ["mapped", "held"] * 2
    mapped, held, mapped_of_more, held_of_more = (float(own) for _, own in rows)
    assert mapped_of_more - mapped < 0.05
    assert held_of_more - held > 0.15


# A training on one core, by its clock; nothing is trained here.
@pytest.fixture
def started(monkeypatch):
    """The cores that the command chooses and the modules that it runs; its changes are undone."""
    cores = []
    ran = []
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(runs, "Stopwatch", runs.Stopwatch)
    # It sets variables of the environment.
    monkeypatch.setattr(one_core, "start_tensorflow", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, chosen: cores.append(chosen))
    run_module = lambda module, **_: ran.append((module, sys.argv[1:]))  # noqa: E731
    monkeypatch.setattr(one_core.runpy, "run_module", run_module)
    return cores, ran


def command(*arguments):
    sys.argv = ["one_core", *arguments]
    one_core.main()


def test_a_run_is_trained_on_one_core_by_processor_seconds(started, monkeypatch):
    cores, ran = started
    clock = types.SimpleNamespace(process_time=lambda: clock.now, now=30.0)
    monkeypatch.setattr(one_core, "time", clock)
    command("--cores_worth=2", "--", "--seed=2", "--max_minutes=1")
    assert cores == [{2}]
    assert ran == [("keras_transformer.train", ["--seed=2", "--max_minutes=1"])]
    stopwatch = runs.Stopwatch(seconds=60.0)
    assert stopwatch.seconds == 60
    clock.now += 120
    assert stopwatch.seconds == 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "--report"], "--report estimates the cost by the wall's clock"),
        (["--core=2"], "the flags of the training are missing"),
    ],
)
def test_a_report_and_missing_flags_of_the_training_are_refused(
    started, arguments, message, capsys
):
    with pytest.raises(SystemExit) as refused:
        command(*arguments)
    assert message in f"{refused.value} {capsys.readouterr().err}"
    assert started == ([], [])


def test_a_run_may_choose_its_core(started):
    command("--core=5", "--", "--seed=2")
    assert started[0] == [{5}]
    with pytest.raises(SystemExit, match=r"--core must be one of \[2, 5\]. Received: 0"):
        command("--core=0", "--", "--seed=2")
