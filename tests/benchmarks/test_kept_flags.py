"""Benchmarks whose results are kept with the flags that they depend on; nothing is trained here."""

import json
import pathlib
import types

import pytest
from absl import flags


def score_by(module, monkeypatch, scores):
    """Let programs end at once; a score is what is said. Gives their commands."""
    commands = []

    def run_alone(folder, command, core):
        commands.append(command)
        folder.mkdir(exist_ok=True)
        (folder / "averaged.npz").touch()
        if any(argument.startswith(("--score=", "--scored=")) for argument in command):
            (folder / "score.json").write_text(json.dumps(scores))

    monkeypatch.setattr(module, "run_alone", run_alone)
    monkeypatch.setattr("benchmarks.paper.side_by_side.run_alone", run_alone)
    return commands


def intents_of(benchmark_of, tmp_path, *arguments):
    return benchmark_of("bert_intents", f"--run_dir={tmp_path}", "--seeds=1", *arguments)


def test_flags_of_classifiers_are_not_those_of_guessing_pieces(benchmark_of, tmp_path, monkeypatch):
    intents = intents_of(benchmark_of, tmp_path, "--classifier_flags=--pooling=first")
    commands = score_by(intents, monkeypatch, {"valid": 0.5, "test": 0.5})
    intents.main([])
    trained = [command for command in commands if command[0] == "keras_transformer.train"]
    of_classifiers = ["--flagfile=bert_intents.flags" in command for command in trained]
    assert of_classifiers == [False] * 2 + [True] * 6
    assert ["--pooling=first" in command for command in trained] == of_classifiers


def test_accuracies_of_other_epochs_are_refused(benchmark_of, tmp_path, monkeypatch):
    intents = intents_of(benchmark_of, tmp_path, "--epochs=2")
    commands = score_by(intents, monkeypatch, {"valid": 0.5, "test": 0.5})
    intents.main([])
    flags.FLAGS.epochs = 3
    count = len(commands)
    with pytest.raises(SystemExit, match="was made with epochs=2, not 3"):
        intents.main([])
    # Going on with the two that guess pieces tells that they are over.
    assert len(commands) - count == 2


@pytest.fixture
def text_to_text(benchmark_of, tmp_path):
    folders = [f"--{name}={tmp_path}" for name in ("text_dir", "trees_dir")]
    return benchmark_of("text_to_text", *folders, f"--runs={tmp_path / 'runs'}")


def test_a_model_that_learned_nothing_has_no_share(text_to_text, monkeypatch, capsys):
    scores = dict.fromkeys(text_to_text.MEMBERS, 0.0)
    score_by(text_to_text, monkeypatch, scores)
    text_to_text.main([])
    assert "| 2de | BLEU | 0.00 | 0.00 | - |" in capsys.readouterr().out.splitlines()
    assert text_to_text.row("2de", 10.0, 15.0)[-1] == "150.0%"


def test_scores_of_other_sentences_are_refused(text_to_text, tmp_path, monkeypatch):
    score_by(text_to_text, monkeypatch, dict.fromkeys(text_to_text.MEMBERS, 1.0))
    text_to_text.main([])
    flags.FLAGS.sentences = 7
    with pytest.raises(SystemExit, match="was made with sentences=500, not 7"):
        text_to_text.main([])


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
