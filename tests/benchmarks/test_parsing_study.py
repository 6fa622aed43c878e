"""What the study of parsers keeps, counts and trains; nothing is parsed or trained here."""

import gzip
import json
import pathlib
import types
from typing import NamedTuple

import numpy as np
import pytest
from absl import flags

from benchmarks.paper import parsing_in_parts
from benchmarks.paper.paper_table3 import comparable
from benchmarks.tables import keep_settings, refuse_others
from keras_transformer.training import checkpoint
from pipelines import corpora
from pipelines.trees import parse

GOLD = [
    parse("(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (DT a) (NN dog))))"),
    parse("(S (NP (PRP it)) (VP (VBD slept)))"),
]
SYMBOLS = ["(S (NP XX XX )NP (VP XX (NP XX XX )NP )VP )S", "(S (NP XX )NP (VP XX )VP"]


class Written(NamedTuple):
    """What a test needs of a `Hypothesis`."""

    text: str
    pieces: list[str]


def written(tree, symbols):
    return Written(str(tree), [*(f"▁{symbol}" for symbol in symbols.split()), "</s>"])


def answers(sentences):
    """A parser that knows both trees, and forgets the last bracket of the second."""
    of = {
        "the cat saw a dog": written(GOLD[0], SYMBOLS[0]),
        "it slept": written(GOLD[1], SYMBOLS[1]),
    }
    return [[of[sentence]] for sentence in sentences]


SENTENCES = ["the cat saw a dog", "it slept"]


@pytest.fixture
def parts_of_one(monkeypatch):
    monkeypatch.setattr(parsing_in_parts, "PART", 1)


def test_a_study_that_is_killed_goes_on_behind_the_last_part(parts_of_one, tmp_path):
    path = tmp_path / "system.json"
    asked = []

    def dies_at_the_second(sentences):
        asked.append(sentences)
        if "it slept" in sentences:
            raise KeyboardInterrupt
        return answers(sentences)

    with pytest.raises(KeyboardInterrupt):
        parsing_in_parts.parsed_in_parts(
            path, {"beam": 1}, SENTENCES, lambda: (dies_at_the_second, "xx")
        )
    assert json.loads(path.read_text())["trees"] == [str(GOLD[0])]

    def goes_on(sentences):
        asked.append(sentences)
        return answers(sentences)

    asked.clear()
    found = parsing_in_parts.parsed_in_parts(path, {"beam": 1}, SENTENCES, lambda: (goes_on, "xx"))
    # The first call warms up.
    assert asked == [["the cat saw a dog"], ["it slept"]]
    assert found["trees"] == list(map(str, GOLD))
    assert found["well_formed"] == [True, False]

    def loads():
        raise AssertionError("all is there")

    assert parsing_in_parts.parsed_in_parts(path, {"beam": 1}, SENTENCES, loads) == found


def test_what_was_parsed_with_other_options_is_refused(tmp_path):
    path = tmp_path / "system.json"
    arguments = (SENTENCES, lambda: (answers, "xx"))
    parsing_in_parts.parsed_in_parts(path, {"length_penalty": 0.3}, *arguments)
    with pytest.raises(SystemExit, match=r"length_penalty=0\.3, not 1\.0"):
        parsing_in_parts.parsed_in_parts(path, {"length_penalty": 1.0}, *arguments)


def test_weights_are_told_by_what_is_in_them(tmp_path):
    (tmp_path / "averaged.npz").write_bytes(b"a")
    before = parsing_in_parts.weights_in(tmp_path)
    assert before.startswith("averaged.npz ")
    (tmp_path / "averaged.npz").write_bytes(b"b")
    assert parsing_in_parts.weights_in(tmp_path) != before


def test_without_repair_what_is_not_well_formed_has_no_brackets(benchmark_of):
    study = benchmark_of("paper.parsing_study")
    found = {"trees": list(map(str, GOLD)), "well_formed": [True, False], "seconds": 1.0}
    repaired = study.measured(found, GOLD)["all"]
    assert (repaired["recall"], repaired["precision"], repaired["complete"]) == (100, 100, 100)
    # The first has four brackets of the seven.
    bare = study.not_repaired(found, GOLD)["all"]
    assert (bare["recall"], bare["precision"], bare["complete"]) == (57.14, 100, 50)
    assert bare["sentences"] == 2


def test_a_row_is_printed_as_soon_as_it_is_there(benchmark_of, monkeypatch, capsys):
    study = benchmark_of("paper.parsing_study")
    monkeypatch.setattr(
        study, "systems", lambda: {name: (None, {}) for name in ("beam 1, repaired", "last")}
    )

    def parsed(name, gold, model, options):
        if name == "last":
            raise KeyboardInterrupt
        return {"trees": list(map(str, GOLD)), "well_formed": [True, False], "seconds": 1.0}

    monkeypatch.setattr(study, "parsed", parsed)
    with pytest.raises(KeyboardInterrupt):
        study.print_systems(GOLD)
    rows = capsys.readouterr().out.splitlines()[3:]
    assert [row.split(" | ")[0] for row in rows] == ["| beam 1, repaired", "| beam 1, not repaired"]


def test_errors_by_label_are_those_of_the_constrained_search(benchmark_of, monkeypatch):
    study = benchmark_of("paper.parsing_study")
    systems = {
        "beam 1, constrained": (None, {"constrained": True}),
        "beam 4, constrained": (None, {"constrained": True}),
        "last alone": (None, {"constrained": False}),
    }
    monkeypatch.setattr(study, "systems", lambda: systems)

    def parsed(name, gold, model, options):
        trees = list(map(str, GOLD))
        return {"trees": trees, "well_formed": [True, True], "seconds": 1.0, "name": name}

    monkeypatch.setattr(study, "parsed", parsed)
    assert study.print_systems(GOLD)["name"] == "beam 4, constrained"


def test_rows_are_constrained_if_they_say_so_whatever_the_run_remembers(
    benchmark_of, monkeypatch, tmp_path
):
    study = benchmark_of(
        "paper.parsing_study", f"--model_dir={tmp_path}", "--silver_model_dir=silver"
    )
    monkeypatch.setattr(checkpoint, "checkpoints", lambda folder: [tmp_path / "step-1.npz"])
    systems = study.systems()
    assert len(systems) == 8
    for name, (_, options) in systems.items():
        assert options["constrained"] == name.endswith(", constrained"), name


@pytest.fixture
def treebank(tmp_path):
    folder = tmp_path / "trees"
    folder.mkdir()
    for split, count in (("train", 30), ("valid", 1), ("test", 1)):
        lines = [f"(S (NP (NN n{number})) (VP (VB v)))\n" for number in range(count)]
        (folder / f"{split}.trees").write_text("".join(lines))
    return folder


@pytest.fixture
def trainings(benchmark_of, tmp_path, treebank):
    return benchmark_of(
        "paper.parser_trainings", f"--run_dir={tmp_path / 'study'}", f"--data_dir={treebank}"
    )


def lines_of(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def test_the_trees_of_a_size_are_drawn_from_all_and_among_those_of_a_larger_one(trainings):
    few = lines_of(trainings.treebank_of(5) / "train.trees.gz")
    more = lines_of(trainings.treebank_of(12) / "train.trees.gz")
    assert len(few) == 5
    assert {*few} < {*more}
    assert more != [f"(S (NP (NN n{number})) (VP (VB v)))" for number in range(12)]
    assert trainings.treebank_of(0).name == "trees"
    with pytest.raises(SystemExit, match="30 trees, fewer than 31"):
        trainings.treebank_of(31)


def trained_by(trainings, monkeypatch, finishes=True):
    """Commands of the trainings, none of which is run."""
    commands = []

    def run(command):
        commands.append(command)
        folder = next(one for one in command if one.startswith("--model_dir=")).partition("=")[2]
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True)
        (folder / "averaged.npz").write_bytes(b"weights")
        if finishes:
            (folder / "evaluation.json").write_text("{}")
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(trainings, "subprocess", types.SimpleNamespace(run=run))
    return commands


def test_a_training_that_was_stopped_is_told_in_a_line(trainings, monkeypatch):
    commands = trained_by(trainings, monkeypatch, finishes=False)
    with pytest.raises(SystemExit, match="trees_5 is not trained to its end: it was stopped"):
        trainings.trained(5)
    assert "--keep_best=f1" in commands[0]


def test_silver_trees_are_of_all_other_sentences(trainings, monkeypatch):
    commands = trained_by(trainings, monkeypatch)

    def parser(sentences):
        words = [sentence.split() for sentence in sentences]
        return [[Written(f"(S (NP (XX {n}) (XX {v})))", [])] for n, v in words]

    monkeypatch.setattr(trainings, "loader", lambda *_, **__: lambda: (parser, "xx"))
    run = trainings.trained_with_silver(5)
    assert [command[-2].rpartition("/")[2] for command in commands] == ["trees_5", run.name]
    mixture = commands[1][-3].removeprefix("--mixture=")
    corpus = corpora.load("mixture", source_language="en", target_language="trees", mixture=mixture)
    words = [int(source.split()[0][1:]) for source in corpus.train.sources]
    assert sorted(words) == list(range(30))
    assert [target.count("(VP") for target in corpus.train.targets] == [1] * 5 + [0] * 25
    # Done is done.
    trainings.trained_with_silver(5)
    assert len(commands) == 2


def test_a_size_is_not_taken_from_another_recipe(trainings, monkeypatch):
    trained_by(trainings, monkeypatch)
    trainings.trained(5)
    flags.FLAGS.recipe = "--flagfile=parsing.flags"
    with pytest.raises(SystemExit, match="trees_5 was made with recipe="):
        trainings.trained(5)


def test_rows_of_sizes_come_one_by_one_and_then_together(trainings, monkeypatch, capsys):
    scores = {"weights": "best epoch", "beam_size": 4}
    scores |= {of: {"f1": 80.5, "complete": 20.0} for of in ("short", "all")}

    def trained(size):
        run = trainings.study_folder() / f"trees_{size}"
        run.mkdir(parents=True, exist_ok=True)
        (run / "evaluation.json").write_text(json.dumps(scores))
        return run

    monkeypatch.setattr(trainings, "trained", trained)
    flags.FLAGS.sizes = ["5", "0"]
    trainings.print_sizes()
    printed = [line for line in capsys.readouterr().out.splitlines() if "best epoch" in line]
    rows = [f"| {name} | best epoch | 4 | 80.5 | 80.5 | 20.0 |" for name in ("5", "all")]
    assert printed == rows + rows


# What was kept with other settings is not taken for what is asked.
def test_equal_settings_are_taken():
    refuse_others("results.json", {"beam": 4}, {"beam": 4})


def test_each_setting_that_differs_is_named():
    with pytest.raises(SystemExit, match=r"^results was made with beam=4, not 1; seed=None, not 2"):
        refuse_others("results", {"beam": 4, "rate": 1}, {"beam": 1, "rate": 1, "seed": 2})


def test_a_folder_keeps_the_settings_that_it_was_begun_with(tmp_path):
    folder = tmp_path / "run"
    keep_settings(folder, {"rate": 0.1})
    # Nothing lies there yet: the training had a flag that is none.
    keep_settings(folder, {"rate": 0.3})
    folder.mkdir()
    (folder / "score.json").write_text("{}")
    keep_settings(folder, {"rate": 0.3})
    with pytest.raises(SystemExit, match=r"made with rate=0\.3, not 0\.1"):
        keep_settings(folder, {"rate": 0.1})


def test_results_of_unknown_settings_are_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "score.json").write_text("{}")
    with pytest.raises(SystemExit, match="unknown settings"):
        keep_settings(tmp_path / "run", {"rate": 0.1})


# Benchmarks whose results are kept with the flags that they depend on; nothing is trained here.
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


# Trainings that tables compare: which weights are scored, and which kept scores are taken.
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


# Which kept scores of table 3 are set beside each other.
def scored(**other):
    same = {"steps": 2000, "text": "a", "batch_tokens": 1024, "arithmetic": "float32"}
    return {**same, "bleu": 1.0, **other}


@pytest.mark.parametrize(
    "other",
    [{"steps": 500}, {"text": "b"}, {"batch_tokens": 512}, {"arithmetic": "mixed_bfloat16"}],
)
def test_only_scores_of_equal_updates_are_averaged(other):
    kept = {"base-1": scored(), "base-2": scored(**other), "big-1": scored(), "big-2": scored()}
    found, left_out = comparable(kept)
    assert found == {"table3/base": [kept["base-1"]], "big": [kept["big-1"], kept["big-2"]]}
    assert left_out == ["base-2"]


def test_all_seeds_of_equal_updates_are_taken():
    kept = {f"a_1_head-{seed}": scored() for seed in (1, 2)}
    assert comparable(kept) == ({"table3/a_1_head": list(kept.values())}, [])


def test_what_is_no_row_is_left_out_and_nothing_kept_is_nothing_found():
    assert comparable({"recurrent-1": scored()}) == ({}, ["recurrent-1"])
    assert comparable({}) == ({}, [])
