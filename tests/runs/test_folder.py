"""A run's folder: what it is, who may go on with it, and a run of 0.5 that goes on. It records the
languages of its corpus.
"""

import errno
import fcntl
import json
import os
import pathlib
import re
import shlex
import shutil
import types
from unittest import mock

import numpy as np
import pytest
from command_flags import values_of_task

from keras_transformer.models import Hyperparameters
from keras_transformer.runs.description import task_of
from keras_transformer.runs.folder import RunFolder, exclusive
from keras_transformer.runs.model_path import ModelPath, weights_of_runs
from keras_transformer.runs.run import Run, exported
from keras_transformer.tasks import TRAINING, corpus_settings
from keras_transformer.tasks.text_task import TRIAL, refuse_long_lines
from keras_transformer.tasks.translation.task import Translation
from keras_transformer.training import checkpoint
from pipelines import corpora
from pipelines.corpora import ParallelText
from pipelines.vocabularies import vocabulary

RELEASE_0_5 = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5" / "run"
# The command that made the run.
OF_RELEASE_0_5 = (
    *("--flagfile=toy.flags", "--mixed_precision=float32", "--seed=7", "--vocabulary_size=290"),
    *("--d_model=24", "--d_ff=48", "--num_heads=2", "--dropout=0.1", "--batch_tokens=1024"),
    *("--validation_sentences=0", "--norelease"),
)
DESCRIPTION = {"task": "t", "sizes": {"width": 3, "depth": None}, "training": {"seed": 1}}


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


def start(folder):
    arrays = {"weights/a": np.ones(1), "progress": np.array('{"step": 1, "seconds": 1.0}')}
    checkpoint.write_archive(checkpoint.path_of(folder.checkpoints, 1), arrays)


def test_a_description_that_is_missing_beside_checkpoints_has_a_remedy(folder):
    missing = rf"^{folder.path} holds no trained model: there is no model\.json in it\. "
    with pytest.raises(FileNotFoundError, match=rf"{missing}Name a folder that `train`"):
        folder.read_description()
    start(folder)
    with pytest.raises(FileNotFoundError, match=rf"{missing}Copy it again from where the model"):
        folder.read_description()


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ({"sizes": {"width": 3, "depth": 2}}, "depth was None, now 2"),
        ({"new": {"x": 1}}, "x was None, now 1"),
        ({"task": "u", "sizes": {}}, "task was t, now u"),
        ({"sizes": {"width": 4}, "training": {"seed": 2}}, "width was 3, now 4; seed was 1, now 2"),
    ],
)
def test_a_started_run_with_another_description_is_refused(folder, now, change):
    folder.describe(DESCRIPTION)
    start(folder)
    message = rf"^{folder.path} holds another run: {change}\. Name another --model_dir"
    with pytest.raises(ValueError, match=message):
        folder.describe({**DESCRIPTION, **now})


def test_a_started_run_that_lost_its_hyperparameters_is_refused(folder):
    description = {"task": "t", "hyperparameters": {"width": 3}}
    folder.describe(description)
    start(folder)
    folder.describe(description)
    folder.description.write_text(json.dumps({"task": "t"}))
    message = r"model\.json must have hyperparameters, .*Received: task\."
    with pytest.raises(ValueError, match=message):
        folder.describe(description, lambda whole: {"size": whole["hyperparameters"]})


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("task", [1], "a string. Received: a list."),
        ("hyperparameters", [1], "an object. Received: a list."),
        ("decoding", 3, "an object. Received: 3."),
        ("asked", "", 'an object. Received: "".'),
    ],
)
def test_a_description_whose_part_has_another_type_is_refused(folder, part, value, message):
    folder.describe({**DESCRIPTION, part: value})
    with pytest.raises(ValueError, match=rf"^`{part}` of .*model\.json must be {message} Copy it"):
        folder.read_description()


def test_an_export_that_lost_its_graph_is_not_taken_for_a_run(folder):
    message = r"run is no run's folder: its model\.json is an export.*, if the graph was lost"
    folder.describe(DESCRIPTION)
    assert ModelPath.of(folder.path).describe() == DESCRIPTION
    of_ctranslate2 = folder.path / "model.bin"
    of_ctranslate2.touch()
    with pytest.raises(ValueError, match=message):
        ModelPath.of(folder.path).describe()
    of_ctranslate2.unlink()
    folder.describe({**DESCRIPTION, "versions": {"tensorflow": "2"}})
    with pytest.raises(ValueError, match=message):
        ModelPath.of(folder.path).describe()


def test_the_task_decides_what_may_change_and_the_change_is_written(folder):
    folder.describe(DESCRIPTION)
    start(folder)
    changed = {**DESCRIPTION, "training": {"seed": 2}}
    with pytest.raises(ValueError, match="seed was 1, now 2"):
        folder.describe(changed)
    assert folder.read_description() == DESCRIPTION
    folder.describe(changed, lambda description: {"sizes": description["sizes"]})
    assert folder.read_description() == changed


def test_a_started_run_goes_on_with_text_that_was_moved_and_not_with_other_text(folder, tmp_path):
    def of_text(path):
        text = {"corpus": {"data_dir": str(path)}, "mixture": {"members": [str(path)]}}
        return {**DESCRIPTION, **text}

    old, new, copy = (tmp_path / name for name in ("old", "new", "copy"))
    old.mkdir()
    folder.describe(of_text(old))
    start(folder)
    copy.mkdir()
    with pytest.raises(ValueError, match=f"holds another run: data_dir was {old}, now {copy}"):
        folder.describe(of_text(copy))
    old.rename(new)
    change, _ = folder.describe(of_text(new))
    assert change == f"data_dir was {old}, now {new}"
    assert folder.read_description() == of_text(new)
    assert folder.describe(of_text(new)) == []
    new.rename(old)
    with pytest.raises(ValueError, match=r"seed was 1, now 2\. Name another"):
        folder.describe({**of_text(old), "training": {"seed": 2}})
    with pytest.raises(ValueError, match=f"data_dir was {new}, now {tmp_path / 'nowhere'}"):
        folder.describe(of_text(tmp_path / "nowhere"))


def test_what_an_earlier_version_did_not_write_has_its_default():
    assert task_of({}) == "translation"
    assert task_of({"task": "parsing"}) == "parsing"
    old = {"hyperparameters": {"vocabulary_size": 9, "d_model": 24, "num_heads": 2}, "corpus": {}}
    fixed = Translation.fixed(old)
    assert fixed["hyperparameters"] == Hyperparameters(9, d_model=24, num_heads=2).as_dict()
    assert fixed["corpus"] == {}


def test_a_checkpoint_in_no_run_is_refused(tmp_path):
    (tmp_path / "x.npz").touch()
    with pytest.raises(FileNotFoundError, match=r"x\.npz lies in no run's folder: its model\.json"):
        ModelPath.of(tmp_path / "x.npz").describe()


def values(*arguments):
    return values_of_task(Translation, *OF_RELEASE_0_5, *arguments)


@pytest.fixture
def release_0_5(tmp_path):
    return RunFolder(shutil.copytree(RELEASE_0_5, tmp_path / "run"))


def history(folder):
    return [json.loads(line) for line in folder.history.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_run_of_0_5_goes_on(release_0_5, capsys):
    before = release_0_5.read_description()
    last = history(release_0_5)[-1]
    flags = values(f"--model_dir={release_0_5.path}", f"--max_steps={last['step'] + 20}")
    Run(Translation, flags, TRAINING).train()
    assert f"going on from step {last['step']} in {release_0_5.path}" in capsys.readouterr().out
    after = release_0_5.read_description()
    assert {part: after[part] for part in before} == before
    *_, newest = history(release_0_5)
    assert newest["step"] == last["step"] + 20
    assert newest["val_cross_entropy"] < last["val_cross_entropy"] + 0.05
    progress = checkpoint.read_newest(release_0_5.checkpoints)[1]["progress"]
    assert json.loads(str(progress))["step"] == last["step"] + 20


@pytest.mark.parametrize(
    ("flag", "change"), [("--d_ff=64", "d_ff was 48, now 64"), ("--seed=8", "seed was 7, now 8")]
)
def test_control_a_run_of_0_5_with_another_flag_is_refused(release_0_5, flag, change):
    with pytest.raises(ValueError, match=f"holds another run: .*{change}"):
        Run(Translation, values(f"--model_dir={release_0_5.path}", flag), TRAINING).train()


@pytest.mark.parametrize("name", ["averaged", "best"])
def test_a_model_without_checkpoints_is_not_overwritten(tmp_path, name):
    folder = RunFolder(tmp_path)
    folder.refuse_finished()
    getattr(folder, name).write_bytes(b"imported")
    with pytest.raises(ValueError, match=rf"without checkpoints.*={tmp_path}/{name}\.npz starts"):
        folder.refuse_finished()
    checkpoint.write_archive(checkpoint.path_of(folder.checkpoints, 1), {})
    folder.refuse_finished()
    (tmp_path / "preparation.json").touch()
    with pytest.raises(ValueError, match="holds a prepared corpus, whose vocabulary training"):
        folder.refuse_finished()


@pytest.mark.parametrize("name", ["averaged", "best"])
def test_a_run_that_begins_anew_overwrites_no_model_beside_checkpoints(folder, name):
    start(folder)
    folder.begin()
    model = getattr(folder, name)
    model.write_bytes(b"trained")
    with pytest.raises(ValueError, match=rf"^no checkpoint of .*overwrite {name}\.npz.*={model} "):
        folder.begin()
    assert model.exists()


def test_a_run_that_begins_anew_forgets_what_was_measured(folder):
    folder.begin()
    folder.path.mkdir()
    folder.history.write_text("{}")
    folder.begin()
    assert list(folder.path.iterdir()) == []


def test_a_damaged_checkpoint_is_reported_on_standard_error(folder, capsys):
    start(folder)
    checkpoint.path_of(folder.checkpoints, 2).write_bytes(b"damaged")
    assert folder.newest_weights() == checkpoint.path_of(folder.checkpoints, 1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "000000002.npz is damaged" in err


def test_scores_stay_with_their_weights_where_others_cannot_be_written(folder, monkeypatch):
    folder.write_averaged({"a": np.zeros(2)})
    folder.evaluation.write_text('{"bleu": 30}')
    before = folder.averaged.read_bytes()

    full = mock.Mock(side_effect=OSError("no space left on device"))
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.whole_files._flush", full)
        with pytest.raises(OSError, match="no space left"):
            folder.write_averaged({"a": np.ones(2)})
    assert folder.averaged.read_bytes() == before
    assert folder.read_scores() == {"scores": {"bleu": 30}}
    # A control: the scores are of no other weights.
    folder.write_averaged({"a": np.ones(2)})
    assert folder.read_scores() == {}


def test_a_folder_may_be_in_the_user_s_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert RunFolder("~/runs/x").path == tmp_path / "runs" / "x"


def test_a_checkpoint_that_is_named_is_the_one_that_is_loaded(folder):
    folder.describe(DESCRIPTION)
    folder.averaged.touch()
    named = folder.path / "best.npz"
    named.touch()
    assert ModelPath.of(named).run.path == folder.path
    assert ModelPath.of(named).run.newest_weights() == named
    assert ModelPath.of(str(folder.path)).run.newest_weights() == folder.averaged
    # The stamps depend on the weights, not on the time of the file.
    before = weights_of_runs([folder.path, named])
    os.utime(folder.averaged, ns=(1, 1))
    assert weights_of_runs(f"{folder.path},{named}") == before
    folder.averaged.write_bytes(b"trained on")
    assert weights_of_runs([folder.path, named]) != before
    assert weights_of_runs(named) == before[1:]


# A run's folder is held by one process. tests/test_streams.py kills one.


def hold(folder):
    with exclusive(folder):
        pass


def test_a_folder_is_made_and_held_by_one_process_at_a_time(tmp_path):
    folder = tmp_path / "runs" / "new"
    message = rf"^another process trains in {folder}\. .*--model_dir\.$"
    with exclusive(folder), pytest.raises(ValueError, match=message):
        hold(folder)
    hold(folder)
    assert list(folder.iterdir()) == []


def test_holding_a_folder_changes_neither_its_files_nor_its_time(tmp_path):
    before = tmp_path.stat().st_mtime_ns
    hold(tmp_path)
    assert tmp_path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == []


def fail_in(folder, *files):
    def write_and_fail():
        for file in files:
            (folder / file).touch()
        raise KeyError

    with pytest.raises(KeyError), exclusive(folder):
        write_and_fail()


def test_a_new_folder_is_removed_if_an_error_precedes_its_first_file(tmp_path):
    folder = tmp_path / "new"
    fail_in(folder)
    assert not folder.exists()
    # Controls: with a file in it, or made before, it stays.
    fail_in(folder, "model.json")
    assert [path.name for path in folder.iterdir()] == ["model.json"]
    fail_in(tmp_path)
    (tmp_path / "empty").mkdir()
    fail_in(tmp_path / "empty")
    assert (tmp_path / "empty").is_dir()


def test_a_file_system_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with exclusive(tmp_path):
        hold(tmp_path)


def test_the_files_of_a_run_have_the_names_that_the_documentation_gives(tmp_path):
    """Those of runs of earlier versions, too."""
    paths = [path for path in vars(RunFolder(tmp_path)).values() if isinstance(path, pathlib.Path)]
    page = pathlib.Path(__file__).parents[2] / "docs" / "training.md"
    table = page.read_text(encoding="utf-8").partition("## What a run leaves")[2].split("\n\n")[1]
    listed = {name.strip("/") for name in re.findall(r"`([\w.]+/?)`", table)}
    assert {path.name for path in paths} - {tmp_path.name} <= listed
    assert len(paths) == 11


# Corpora: flags, and the languages of the text.
CORPORA = {
    "lines": ((), ("en", "en")),
    "spans": ((), ("en", "spans")),
    "treebank": ((), ("en", "trees")),
    "slots": (("--target_language=slots",), ("en", "slots")),
    "reverse": (("--target_language=x",), ("en", "x")),
}


@pytest.fixture
def settings_of(tmp_path):
    """A function of a key of `CORPORA` and flags: the settings of the corpus, and all values."""
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("one dog runs\n")
        (tmp_path / f"{split}.trees").write_text("(S (N dogs) (V run))\n")

    def settings(name, *arguments):
        folder = () if name in ("slots", "reverse") else (f"--data_dir={tmp_path}",)
        corpus = "intents" if name == "slots" else name
        flags = (f"--corpus={corpus}", *folder, *CORPORA[name][0], *arguments)
        values = values_of_task(Translation, *flags)
        return corpus_settings.corpus_settings(values), values

    return settings


@pytest.mark.parametrize("name", CORPORA)
def test_a_run_says_the_languages_of_its_corpus(settings_of, name):
    if name == "slots":
        pytest.importorskip("hassil", reason="install the extra [intents]")
        pytest.importorskip("home_assistant_intents", reason="install the extra [intents]")
    settings, values = settings_of(name)
    corpus = corpus_settings.load(settings, {})
    description = corpus_settings.described(settings, corpus)
    languages = (description["corpus"]["source_language"], description["corpus"]["target_language"])
    assert languages == (corpus.source_language, corpus.target_language) == CORPORA[name][1]
    assert corpora.load(**description["corpus"]) == corpus
    assert corpus_settings.folder_name(values) == "_".join([settings["name"], *languages])
    # An earlier version wrote the languages of the flags.
    assert corpus_settings.fixed({"corpus": settings}) == corpus_settings.fixed(description)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("lines", "--source_language=de"),
        ("slots", "--target_language=intent"),
        ("reverse", "--target_language=y"),
    ],
)
def test_control_another_text_is_another_run(settings_of, name, flag):
    before, now = (
        corpus_settings.fixed({"corpus": settings_of(name, *more)[0]}) for more in ((), (flag,))
    )
    assert before != now


# Lines that are too long for the search are refused before training.
LONG = "ab " * 1100


def corpus(valid, test):
    splits = {"valid": valid, "test": test}
    texts = {name: ParallelText(lines, lines) for name, lines in splits.items()}
    return types.SimpleNamespace(**texts)


def test_a_text_too_long_is_refused_with_its_split_and_line():
    pieces = vocabulary.learn(["a b"], 264)
    with pytest.raises(ValueError, match=r"^the test split, text 2 has .* Split it, or leave"):
        refuse_long_lines(corpus(["a"], ["a", LONG]), pieces, 1)
    with pytest.raises(ValueError, match=r"^the validation split, text 1 has"):
        refuse_long_lines(corpus([LONG], ["a"]), pieces, 1)
    # The control: what is not translated may be long.
    refuse_long_lines(corpus(["a", LONG], ["b"]), pieces, 1)


# The printed command that tries an export: a shell reads its text literally.
@pytest.mark.parametrize("text", ["a b", "It's 5 o'clock", '"$HOME" `x`', "", "\\n", "{x}"])
def test_a_shell_reads_the_text_as_it_is(text):
    printed = exported(TRIAL % "predict", [text], pathlib.Path("my models/m/1"))
    line = printed.partition("Try it:\n  ")[2]
    assert shlex.split(line) == [
        *("echo", text, "|"),
        *("python", "-m", "keras_transformer.predict", "--model=my models/m/1"),
    ]


def test_no_trial_is_printed_without_a_command_or_a_text():
    path = pathlib.Path("saved_models/m/1")
    assert exported("", [[0.5]], path) == exported(TRIAL, [], path) == f"exported to {path}."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), None),
        (("--protect=tags",), "kept"),
        (("--protect_pattern=[0-9]+",), "kept"),
        (("--protect=tags", "--protect="), None),
        (("--protect=tags", "--markup=dropped"), None),
        (("--markup=alone",), "alone"),
        (("--protect=tags", "--corpus=reverse"), None),
    ],
)
def test_markup_is_kept_where_it_is_protected(arguments, expected):
    values = values_of_task(Translation, "--corpus=home_assistant", *arguments)
    assert corpus_settings.corpus_settings(values).get("markup") == expected
