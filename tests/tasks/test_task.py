"""A task in one file of the tests trains, resumes, averages and exports like any other."""

import collections
import contextlib
import errno
import io
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from command_flags import NO_FLAGS, values_of_task
from exports import checks_here
from small_model import eager_training
from tasks.capitals import Capitals
from tasks.reversed_strings import ReversedStrings, classifier, strings

from keras_transformer.runs import initialization
from keras_transformer.runs import run as runs
from keras_transformer.runs.folder import RunFolder, exclusive
from keras_transformer.runs.initialization import differences, refuse_other_heads, start_from
from keras_transformer.runs.run import Run
from keras_transformer.tasks import TRAINING, task_class
from keras_transformer.tasks.task import with_perplexity
from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Stopwatch
from keras_transformer.training.validation import BestSoFar
from keras_transformer.training.watchers import Board, Watchers

PROGRAM = pathlib.Path(__file__).with_name("reversed_strings.py")
FAST = (
    *("--schedule=constant", "--learning_rate=0.02", "--warmup_steps=5", "--batch_tokens=256"),
    *("--mixed_precision=float32", "--average_over=epochs", "--keep_checkpoints=4"),
    "--average_checkpoints=2",
)


def accuracy_by_class(run):
    """Shares of new strings of either class that a run's weights classify rightly."""
    model = classifier("float32", 0.0)
    checkpoint.load_weights(run / "averaged.npz", model)
    texts, classes = strings(4, 60)
    guesses = [
        int(np.argmax(model(np.array([[*text.encode()]], np.int32)), axis=-1)[0]) for text in texts
    ]
    right = np.array(guesses) == classes
    return right[classes == 0].mean(), right[classes == 1].mean()


def trained(task, folder, *arguments):
    """The folder of a run of a task, trained in this process, with further flags."""
    values = values_of_task(task, f"--model_dir={folder}", *FAST, *arguments)
    # To trace a graph takes as long as 40 steps without it.
    is_short = (values["max_steps"] or math.inf) < 20
    with checks_here(), eager_training() if is_short else contextlib.nullcontext():
        Run(task, values, TRAINING).train()
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory, shared):
    """The folder of a whole run, and its output."""
    folder = tmp_path_factory.mktemp("whole")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run = trained(
            ReversedStrings, folder / "run", f"--export_dir={folder / 'saved'}", "--max_epochs=4"
        )
    shared.add(folder)
    return run, printed.getvalue()


def test_it_learns_both_classes_and_is_exported(whole):
    run, printed = whole
    assert min(accuracy_by_class(run)) > 0.9
    assert "strings, half of them reversed\n" in printed
    assert re.search(r"mean of the checkpoints of steps \d+, \d+, accuracy ", printed)
    assert json.loads((run / "model.json").read_text())["task"] == "reversed_strings"
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert set(history[-1]) >= {"loss", "accuracy", "val_cross_entropy", "val_accuracy"}
    assert not any("bleu" in name for line in history for name in line)
    version = run.parent / "saved" / "1"
    classify = tf.saved_model.load(str(version)).signatures["serving_default"]
    texts = tf.constant([[*b"cdef"], [*b"fedc"]], tf.int32)
    assert classify(letters=texts)["class"].numpy().tolist() == [0, 1]
    golden = (version / "assets.extra" / "golden.jsonl").read_text().splitlines()
    assert len(golden) == 4
    assert json.loads(golden[1])["class"] == 1


@pytest.mark.parametrize(
    ("name", "flag", "message"),
    [
        ("other", "--seed=1", "task was reversed_strings, now other"),
        ("reversed_strings", "--seed=5", "seed was 1, now 5"),
        ("reversed_strings", "--batch_tokens=128", "batch_tokens was 256, now 128"),
    ],
)
def test_a_setting_that_decides_the_result_must_not_change(whole, name, flag, message):
    task = type("Task", (ReversedStrings,), {"name": name})
    with pytest.raises(ValueError, match=f"holds another run: {message}. Name another"):
        trained(task, whole[0], "--max_epochs=9", "--norelease", flag)


def test_it_starts_from_the_weights_of_another_run(whole, tmp_path, capsys):
    run, _ = whole
    folder = tmp_path / "next"
    values = values_of_task(ReversedStrings, f"--model_dir={folder}", f"--init_from={run}", *FAST)
    model = classifier("float32", 0.3)
    start_from(run, ReversedStrings(values), model)
    assert f"from {run}: its weights\n" in capsys.readouterr().out
    for variable in model.weights:
        expected = checkpoint.weights_of(run / "averaged.npz")[f"weights/{variable.path}"]
        np.testing.assert_array_equal(variable.numpy(), expected)


def of_weights(path):
    return {name: array.tolist() for name, array in checkpoint.weights_of(path).items()}


def test_what_a_kill_left_unwritten_is_written_though_the_run_is_over(whole, tmp_path):
    """The last epoch is measured and is the best; the kill came before its checkpoint was counted
    among those that are averaged, and before its weights were kept.
    """
    run = pathlib.Path(shutil.copytree(whole[0], tmp_path / "run"))
    first, *_, last = checkpoint.checkpoints(run / "checkpoints")
    *lines, line = (run / "history.jsonl").read_text().splitlines()
    line = json.dumps({**json.loads(line), "val_accuracy": 2.0})
    (run / "history.jsonl").write_text("\n".join([*lines, line]) + "\n")
    progress = {"step": checkpoint.step_in(first), "val_accuracy": 0.5}
    old = {**checkpoint.weights_of(first), "progress": np.array(json.dumps(progress))}
    checkpoint.write_archive(run / "best.npz", old)
    cut = checkpoint.path_of(last.parent, checkpoint.step_in(last), averaged=False)
    last.rename(cut)
    # A run that resumes starts from no other.
    flags = ("--norelease", "--keep_best=accuracy", f"--init_from={tmp_path / 'nowhere'}")
    trained(ReversedStrings, run, "--max_epochs=4", *flags)
    assert last.exists()
    assert not cut.exists()
    assert of_weights(run / "averaged.npz") == of_weights(last) != of_weights(first)


def test_the_history_of_deleted_checkpoints_is_dropped(whole, tmp_path):
    run = pathlib.Path(shutil.copytree(whole[0], tmp_path / "run"))
    shutil.rmtree(run / "checkpoints")
    (run / "averaged.npz").unlink()
    trained(ReversedStrings, run, "--max_steps=1", "--norelease")
    [line] = (run / "history.jsonl").read_text().splitlines()
    assert json.loads(line)["step"] == 1


def test_a_second_process_does_not_train_in_the_same_folder(tmp_path):
    message = rf"^another process trains in {tmp_path}\. .*--model_dir\.$"
    with exclusive(tmp_path), pytest.raises(ValueError, match=message):
        trained(ReversedStrings, tmp_path, "--max_epochs=4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_tensorboard_s_curves_go_on_at_the_step_of_the_run(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for epoch in range(2):
        board = Board(tmp_path)
        board.update_freq = 1
        board.set_model(model)
        board.on_train_begin()
        for batch in range(3):
            board.on_train_batch_begin(batch)
            model.optimizer.iterations.assign_add(1)
            board.on_train_batch_end(batch, {"loss": 1.0})
        board.on_epoch_end(epoch, {"val_loss": 2.0})
        board.on_train_end()
    records = tf.data.TFRecordDataset([str(path) for path in sorted(tmp_path.rglob("*tfevents*"))])
    events = [tf.compat.v1.Event.FromString(record) for record in records.as_numpy_iterator()]
    steps = collections.defaultdict(set)
    for event in events:
        for value in event.summary.value:
            steps[value.tag].add(event.step)
    assert steps["batch_loss"] == {1, 2, 3, 4, 5, 6}
    assert steps["epoch_loss"] == {0, 1}


def test_curves_that_cannot_be_written_are_reported_once(tmp_path, monkeypatch):
    def full(*arguments, **named):
        message = f"{{{{function_node x}}}} {tmp_path}/events.v2; No space left on device\n\tFailed"
        raise tf.errors.ResourceExhaustedError(None, None, message)

    monkeypatch.setattr(keras.callbacks.TensorBoard, "on_train_batch_end", full)
    reports = []
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    board = Board(tmp_path, reports.append)
    model.fit(np.zeros((4, 1)), np.zeros(4), batch_size=1, callbacks=[board], verbose=0)
    assert reports == [
        f"the curves in {tmp_path} could not be written: [Errno 28] No space left on device: "
        f"'{tmp_path}'. Training continues."
    ]
    assert board.lost == [f"the curves in {tmp_path}"]


@pytest.mark.parametrize(("nats", "perplexity"), [(0.0, 1.0), (710.0, math.inf), (math.inf,) * 2])
def test_a_perplexity_that_no_float_holds_is_infinite(nats, perplexity):
    measured = with_perplexity({"cross_entropy": nats, "accuracy": 0.5})
    assert measured == {"cross_entropy": nats, "perplexity": perplexity, "accuracy": 0.5}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, {"positions": "rotary"}, []),
        ({"d_model": 8}, {"positions": "rotary"}, ["positions was sinusoidal, now rotary"]),
        ({"positions": "rotary"}, {"positions": "rotary", "norm": "post", "dropout": 0.3}, []),
        (
            {"norm": "pre", "scaled_embeddings": False, "activation": "gelu"},
            {"norm": "post", "scaled_embeddings": True, "activation": "gelu"},
            ["norm was pre, now post", "scaled_embeddings was False, now True"],
        ),
        ({"architecture": "recurrent"}, {"architecture": "recurrent"}, []),
    ],
)
def test_differences_that_shapes_do_not_show_are_listed(before, now, expected):
    assert differences(before, now) == expected


def test_another_number_of_heads_is_refused(monkeypatch, tmp_path, capsys):
    """The weights have the same shapes, so nothing else shows it."""
    monkeypatch.setattr(initialization, "starting_point", lambda path: ({}, None))
    (tmp_path / "model.json").write_text('{"hyperparameters": {"num_heads": 4}}')
    parts = {"description": lambda: {"hyperparameters": {"num_heads": 2}}, "carried_over": None}
    task = types.SimpleNamespace(**parts, pieces=None)
    message = r"^--num_heads must be 4, .*: num_heads=2\. Pass --num_heads=4\.$"
    with pytest.raises(ValueError, match=message):
        start_from(str(tmp_path), task, None)
    # Another program's task may describe no hyperparameters.
    (tmp_path / "model.json").write_text('{"task": "another"}')
    start_from(str(tmp_path), task, types.SimpleNamespace(weights=[]))
    assert capsys.readouterr().out == f"from {tmp_path}: its weights\n"
    # A control, and models of which one has no heads or says nothing.
    same = {"num_heads": 4}
    for before, now in ((same, same), ({}, same), (same, {}), ({"d_model": 8}, same)):
        refuse_other_heads(before, now, "runs/x")


BEST = r"^--keep_best must be one of cross_entropy, accuracy\. Received: {}\."
NO_ADAPTER = r"^--lora_rank adapts the .*_from\. Pass it, and no --freeze\.$"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        *((f"--keep_best={name}", BEST.format(name)) for name in ("loss", "bleu")),
        ("--average_checkpoints=5", r"^--average_checkpoints=5 needs as many .*points=4\. K"),
        *((f"--lora_rank=2{more}", NO_ADAPTER) for more in ("", " --init_from=x --freeze=encoder")),
        ("--distribution=tpu", r"^--distribution=tpu needs batches .*\. Pass --static_shapes\.$"),
        ("--adapter=a.npz", r"^--adapter needs the model .*\. Pass it by --init_from\.$"),
    ],
)
def test_a_result_that_is_not_measured_or_kept_cannot_be_chosen(tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        trained(ReversedStrings, tmp_path, *flags.split())
    assert not [*tmp_path.iterdir()]  # refused before anything is written


def test_a_model_without_checkpoints_is_not_trained_over(tmp_path):
    (tmp_path / "averaged.npz").touch()
    with pytest.raises(ValueError, match="holds a model without checkpoints"):
        trained(ReversedStrings, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["averaged.npz"]


@pytest.mark.parametrize("flag", ["--keep_best=accuracy", "--ema=0.9"])
def test_the_number_of_checkpoints_is_ignored_where_none_are_averaged(tmp_path, flag):
    arguments = (flag, "--average_checkpoints=5", "--max_steps=2", "--norelease")
    assert (trained(ReversedStrings, tmp_path, *arguments) / "averaged.npz").exists()


class Counting(Stopwatch):
    """A stopwatch on which each reading takes a second, whatever the machine."""

    def __init__(self, seconds=0.0):
        self._seconds = seconds

    @property
    def seconds(self):
        self._seconds += 1
        return self._seconds


def test_the_number_of_the_lowest_cross_entropy_is_averaged(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runs, "Stopwatch", Counting)
    arguments = ("--average_over=minutes", "--average_checkpoints=4", "--average_share=1")
    run = trained(ReversedStrings, tmp_path, *arguments, "--max_minutes=2", "--norelease")
    match = re.search(
        r"^.*checkpoints? of steps? ([\d, ]+), chosen of 1 to (\d) by validation cross-"
        r"entropy: ([\d., ]+): ",
        capsys.readouterr().out,
        re.MULTILINE,
    )
    steps = [int(step.replace(",", "")) for step in match[1].split(", ")]
    losses = [float(loss) for loss in match[3].split(", ")]
    paths = checkpoint.checkpoints_to_average(run / "checkpoints")
    assert len(losses) == int(match[2]) == min(4, len(paths))
    assert len(steps) == losses.index(min(losses)) + 1
    assert steps == [checkpoint.step_in(path) for path in paths[-len(steps) :]]
    # The last weights are among them.
    assert steps[-1] == checkpoint.step_in(checkpoint.checkpoints(run / "checkpoints")[-1])


@pytest.mark.parametrize(
    ("limits", "is_chosen"),
    [
        (("--max_minutes=2", "--max_steps=100000", "--max_epochs=1000"), True),
        (("--max_minutes=1000", "--max_steps=8"), False),
    ],
)
def test_a_number_is_chosen_by_minutes(tmp_path, capsys, monkeypatch, limits, is_chosen):
    monkeypatch.setattr(runs, "Stopwatch", Counting)
    arguments = ("--average_over=epochs", "--average_checkpoints=3", "--keep_checkpoints=3")
    trained(ReversedStrings, tmp_path, *arguments, *limits, "--norelease")
    printed = capsys.readouterr().out
    assert re.search(r"checkpoints? of steps? \d", printed)
    assert ("by validation cross-entropy" in printed) == is_chosen


@contextlib.contextmanager
def disk_that_is_full_from(step):
    """A disk on which no checkpoint of this step or a later one can be written."""
    save = checkpoint.save

    def full(path, model, progress):
        if progress["step"] >= step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        save(path, model, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", full)
        yield


def test_a_run_whose_end_could_not_be_saved_ends_with_what_is_lost(tmp_path, capsys):
    run, arguments = tmp_path / "run", ("--max_steps=12", "--norelease")
    with disk_that_is_full_from(10), pytest.raises(OSError) as caught:
        trained(ReversedStrings, run, *arguments)
    [newest] = [checkpoint.step_in(checkpoint.checkpoints(run / "checkpoints")[-1])]
    assert re.fullmatch(
        r"the last weights, of step \d+, could not be saved: \[Errno 28\] No space left on "
        rf"device: '{run}/checkpoints/last-\d+\.npz'\. The newest checkpoint is of step {newest}\. "
        r"Make room\. Then the same command goes on from there\.",
        str(caught.value),
    )
    assert not (run / "averaged.npz").exists()
    # Once there is room, the same command completes the run.
    trained(ReversedStrings, run, *arguments)
    assert f"going on from step {newest} in" in capsys.readouterr().out
    assert (run / "averaged.npz").exists()


def test_a_disk_full_from_the_first_step_on_is_named_as_the_cause(tmp_path):
    expected = r"^the last weights, of step 3, .*There is no checkpoint before it\. Make room\."
    with disk_that_is_full_from(0), pytest.raises(OSError, match=expected):
        trained(ReversedStrings, tmp_path / "run", "--max_steps=3", "--norelease")


def test_best_weights_that_could_not_be_kept_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(BestSoFar, "_keep", lambda self: None)
    expected = r"^could not be written: the best weights, of step 3, in .*best\.npz\. The last"
    with pytest.raises(OSError, match=expected):
        trained(
            ReversedStrings, tmp_path, "--max_steps=3", "--norelease", "--keep_best=cross_entropy"
        )
    assert not (tmp_path / "averaged.npz").exists()


# What `evaluate` is refused by, for a model that does not say what text it was trained on.
OWN_TEXT = {
    "translation": "--source_file and --reference_file",
    "language_modelling": "text by --reference_file",
    "parsing": "trees by --reference_file",
    "classification": "texts and labels by --source_file and --reference_file",
    "tagging": "texts and labels by --source_file and --reference_file",
}
PICTURES = "image_classification"
REFUSALS = [
    *((name, {}, f"m does not say what .* on: pass {text}") for name, text in OWN_TEXT.items()),
    ("parsing", {"metrics": ["bleu"]}, "--metrics is for translations, and m parses: leave"),
    ("parsing", {"confidence": True}, "--confidence is for translations, and m parses: leave"),
    ("parsing", {"source_file": "a"}, "--source_file is for translations, and m parses: leave"),
    ("tagging", {"metrics": ["bleu"]}, "--metrics is for translations, and m gives labels: leave"),
    ("language_modelling", {"source_file": "a"}, "--source_file is for answers .* continues text"),
    ("masking", {"metrics": ["bleu"]}, "--metrics is for answers that have a reference, .* pieces"),
    (PICTURES, {}, "m does not say what pictures it was trained on"),
    (PICTURES, {"confidence": True}, "--confidence is for text, and m gives pictures"),
    (PICTURES, {"precision": "bfloat16"}, "--precision=bfloat16: models of pictures compute"),
]


@pytest.mark.parametrize(("name", "values", "message"), REFUSALS)
def test_what_a_model_cannot_be_scored_by_is_refused(name, values, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        task_class(name).scorer({}, "m", {**NO_FLAGS, **values})


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        ("translation", {"name": "text_files", "data_dir": "gone"}),
        ("translation", {"name": "tsv", "data_file": "gone.tsv"}),
        ("language_modelling", {"name": "lines", "data_dir": "gone"}),
        ("parsing", {"name": "treebank", "data_dir": "gone"}),
    ],
)
def test_scoring_without_the_moved_text_is_refused_with_what_to_pass(name, moved):
    languages = {"source_language": "a", "target_language": "b"}
    message = rf"^m was .* no longer there .*gone.*pass {OWN_TEXT[name]}"
    with pytest.raises(FileNotFoundError, match=message):
        task_class(name).scorer({"corpus": {**languages, **moved}}, "m", NO_FLAGS)


def test_a_task_of_no_name_here_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"task='reversed_strings'\. It is another .*export\.run"):
        task_class("reversed_strings")
    with pytest.raises(ValueError, match=r"task='sentence_vectors'\. import_model wrote it"):
        task_class("sentence_vectors")


def run_program(path, folder, *arguments):
    """Run the program of a task in a process of its own; return the completed process."""
    path_of_modules = os.pathsep.join([str(path.parents[2]), *sys.path])
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path_of_modules},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_its_own_program_trains_resumes_and_exports_it(tmp_path):
    train = ("train", "--model_dir=run", "--export_dir=saved", *FAST)
    for flags, words in (
        ((*train, "--max_steps=8", "--norelease"), "step 8"),
        ((*train, "--max_epochs=2"), "going on from step 8 "),
        (("export", "--model_dir=run", "--export_dir=again"), "exported to "),
    ):
        process = run_program(PROGRAM, tmp_path, *flags)
        assert process.returncode == 0, process.stderr
        assert words in process.stdout
    first, again = (
        (tmp_path / name / "1" / "assets.extra" / "golden.jsonl").read_text()
        for name in ("saved", "again")
    )
    assert first == again


class Recorder:
    """A callback that records its calls."""

    def __init__(self, calls):
        self.calls = calls

    def set_model(self, model):
        self.model = model

    def on_epoch_end(self, epoch, logs):
        self.calls.append((self.model, epoch))


@pytest.mark.parametrize(
    ("step", "last_step", "out_of_time", "lines", "epoch"),
    [
        (20, 90, False, [10], 1),
        (20, 90, False, [10, 20], None),
        # A later line of a run that went on from an earlier step.
        (20, 90, False, [10, 20, 30], None),
        (15, 90, False, [10], None),
        (15, 15, False, [10], 1),
        (15, 90, True, [10], 1),
        (15, 90, True, [10, 15], None),
        (0, 90, False, [], None),
    ],
)
def test_a_saved_end_is_measured(tmp_path, step, last_step, out_of_time, lines, epoch):
    history = tmp_path / "history.jsonl"
    history.write_text("".join(f'{{"step": {line}, "val_bleu": 1.0}}\n' for line in lines))
    calls = []
    watchers = types.SimpleNamespace(
        step=step,
        last_step=last_step,
        limit=types.SimpleNamespace(is_out_of_time=out_of_time),
        folder=types.SimpleNamespace(history=history),
        validation=Recorder(calls),
        best=[Recorder(calls)],
    )
    Watchers.catch_up(watchers, "model", 10)
    assert calls == ([] if epoch is None else [("model", epoch)] * 2)


# A user's task, like tagging, in one file: its own flags, a run, its score and an export, without a
# change of the package.
CAPITALS = pathlib.Path(__file__).with_name("capitals.py")
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
def with_capitals(tmp_path_factory, shared):
    """The folder of a run, and of its SavedModel."""
    folder = tmp_path_factory.mktemp("capitals")
    for split, count in (("train", 300), ("valid", 20), ("test", 20)):
        text = "\n".join(lines(split, count)) + "\n"
        (folder / f"{split}.en").write_text(text, encoding="utf-8")
    arguments = ("--corpus=lines", f"--data_dir={folder}", "--source_language=en", *SIZES)
    places = (f"--model_dir={folder / 'run'}", f"--export_dir={folder / 'saved'}")
    with checks_here():
        Run(Capitals, values_of_task(Capitals, *arguments, *places), TRAINING).train()
    shared.add(folder)
    return folder


def test_it_learns_how_words_are_written(with_capitals):
    assert RunFolder(with_capitals / "run").read_scores()["scores"]["accuracy"] > 0.9


def test_its_export_restores_what_the_run_restores(with_capitals):
    texts = ["anna sees the un near rome", "", "the door"]
    exported = tf.saved_model.load(str(with_capitals / "saved" / "1")).signatures["restore"]
    restored = exported(text=tf.constant(texts))["restored"].numpy().tolist()
    module = Capitals.reload(RunFolder(with_capitals / "run"), {})
    assert module.restore(tf.constant(texts))["restored"].numpy().tolist() == restored
    assert restored == [b"Anna sees the UN near Rome", b"", b"the door"]


def test_its_own_option_is_a_flag_that_a_run_keeps(with_capitals):
    values = values_of_task(Capitals, "--noacronyms")
    assert Capitals(values).kinds == 2
    assert RunFolder(with_capitals / "run").read_description()["capitals"] == {"acronyms": True}


@pytest.mark.slow
def test_its_program_knows_its_flags_and_refuses_others(tmp_path):
    help_of_section, help_of_all, wrong = (
        run_program(CAPITALS, tmp_path, "train", argument)
        for argument in ("--help=Capitals", "--help", "--mask_share=0.1")
    )
    assert "--[no]acronyms" in help_of_section.stdout
    assert help_of_all.stdout.startswith("A user's own task, of the kind of tagging")
    assert wrong.returncode == 2
    assert "--mask_share" in wrong.stderr
    assert "Traceback" not in wrong.stderr
