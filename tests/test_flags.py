"""Flag files are found from any folder, and later flags override earlier ones."""

import contextlib
import os
import re
import subprocess
import sys
import types
from unittest import mock

import pytest
import tensorflow as tf
from absl import flags as absl_flags
from command_flags import COMMANDS, EVERY_FLAG, flags_of, names_of
from shell import printed

from keras_transformer import flags, tasks, train
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.decoding.remembered_options import LANGUAGES, REMEMBERED
from keras_transformer.flagfiles import expand_flagfiles, placed
from keras_transformer.flags.definition import PathParser
from keras_transformer.flags.help_pages import help_of
from keras_transformer.flags.scopes import every_place
from keras_transformer.runs import model_path
from keras_transformer.saved_models.options import Precision, Version


def values(arguments):
    return dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)


@pytest.mark.parametrize("argv", [["--flagfile=base.flags"], ["--flagfile", "base.flags"]])
def test_the_package_s_flag_files_are_found_from_any_folder(argv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert values(expand_flagfiles(argv))["d_model"] == "512"


def test_a_file_of_the_working_folder_comes_first_and_may_include_ours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.flags").write_text("# mine\n--flagfile=base.flags\n\n--d_model=64\n// end\n")
    expanded = values(expand_flagfiles(["--flagfile=mine.flags", "--d_ff=96"]))
    assert (expanded["d_model"], expanded["d_ff"]) == ("64", "96")
    (tmp_path / "base.flags").write_text("--d_model=32\n")
    expanded = expand_flagfiles(["--d_model=1", "--flagfile=base.flags", "--d_model=2"])
    assert expanded == ["--d_model=1", "--d_model=32", "--d_model=2"]


def test_the_error_of_a_missing_flag_file_names_the_existing_ones():
    names = r"'none.flags'.*base.flags, base_en_fr.flags, .*table3/a_16_heads.flags, .*, tiny.flags"
    with pytest.raises(FileNotFoundError, match=names):
        expand_flagfiles(["--flagfile=none.flags"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"--seed=3\n# \xe9\n", "mine.flags, line 2: must be UTF-8 text"),
        (b"--seed=3\n\n--d_ff=\x00\n", "mine.flags, line 3: holds a NUL"),
        (b"--seed=3\n--model_dir=x # mine\n", "mine.flags, line 2: a comment needs a"),
        (b"#" * (10**6 + 1), "flag file 'mine.flags' must have at most 1,000,000 bytes"),
    ],
    ids=["latin1", "nul", "comment", "huge"],
)
def test_a_flag_file_that_is_no_text_is_refused_by_name(content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.flags").write_bytes(content)
    with pytest.raises(ValueError, match=f"^{message}"):
        expand_flagfiles(["--flagfile=mine.flags"])
    (tmp_path / "outer.flags").write_text("\n--flagfile=mine.flags\n")
    with pytest.raises(ValueError, match=f"^outer.flags, line 2: {message}"):
        expand_flagfiles(["--flagfile=outer.flags"])


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "folder's name", "long name"])
def test_a_flag_file_must_be_a_regular_file(kind, tmp_path):
    paths = {"device": "/dev/zero", "long name": "a" * 300, "folder's name": f"{tmp_path}/"}
    path = paths.get(kind, tmp_path / "p")
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    message = "is neither in" if kind == "long name" else "is no regular file"
    with pytest.raises(OSError, match=message):
        expand_flagfiles([f"--flagfile={path}"])


def test_flag_files_are_nested_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(60):
        (tmp_path / f"{number}.flags").write_text(f"--flagfile={number + 1}.flags\n")
    (tmp_path / "60.flags").write_text("--seed=4\n")
    assert expand_flagfiles(["--flagfile=20.flags"]) == ["--seed=4"]
    with pytest.raises(ValueError, match=r"flag file '50\.flags' is nested in 50 others"):
        expand_flagfiles(["--flagfile=0.flags"])
    (tmp_path / "60.flags").write_text("--flagfile=59.flags\n")
    with pytest.raises(ValueError, match="includes itself"):
        expand_flagfiles(["--flagfile=59.flags"])


def test_a_help_line_is_complete_by_itself_and_the_same_wherever_it_is_declared():
    for name in EVERY_FLAG:
        [line] = {place.option.setting.help for place in every_place()[name]}
        assert line[0].isupper(), name
        assert line.endswith("."), name


def test_help_marks_the_options_of_tensorflow_alone():
    page = help_of(["--task=translation", "--help"], "", train.SECTIONS, train.OF_TASKS)
    entries = [" ".join(entry.split()) for entry in re.split(r"\n\n|\n  --(?:\[no\])?", page)]
    names = {re.match(r"\w+", text)[0] for text in entries if text.endswith("Only on TensorFlow.")}
    places = [place for declared in every_place().values() for place in declared]
    marked = {place.option.name for place in places if place.option.setting.on_tensorflow}
    assert names == marked
    assert {"augment", "report", "distribution"} < marked < {place.option.name for place in places}


def test_values_are_those_of_the_given_sections():
    FLAGS = flags_of("export")
    assert flags.values(FLAGS, Precision) == {"precision": "float32"}
    assert flags.values(FLAGS, Version, Precision) == {"version": None, "precision": "float32"}


def test_only_typed_flags_are_decoding_options():
    searched = {"beam_size": 4, "coverage_penalty": 0.0}
    for arguments, options in (
        ((), {}),
        (("--beam_size=4", "--coverage_penalty=0", "--seed=3"), searched),
        (("--seed=3", "--samples=2"), {"samples": 2, "seed": 3}),
    ):
        assert flags.decoding_options(flags_of("translate", *arguments)) == options


def test_the_help_of_a_remembered_option_says_its_default():
    """The run decides, or the task: trees may be longer than translations."""
    for name in REMEMBERED:
        # Imported models set some of them, and --forbidden names a file of words.
        if name in ("barred", "forbidden_words", *LANGUAGES):
            continue
        flag = EVERY_FLAG[name]
        assert flag.default is None, name
        default = getattr(DecodingOptions(), name)
        if default is not None:
            words = f"{default}".removesuffix(".0")
            if isinstance(default, bool):
                words = "yes" if default else "no"
            assert f"Default: {words}" in flag.help, name


def give(monkeypatch, *arguments):
    """Set the places of flags as if a command had these arguments."""
    places = placed(arguments)
    names = [argument.text.removeprefix("--").partition("=")[0] for argument in places]
    monkeypatch.setattr(flags, "PLACES", dict(zip(names, places, strict=True)))


def test_flags_that_change_nothing_are_refused_on_the_command_line_alone(monkeypatch):
    give(monkeypatch, "--seed=3", "--flagfile=parsing_small.flags")
    flags.refuse(flags.of_sections(DecodingOptions), "is for searches")
    give(monkeypatch, "--seed=3", "--constrained=true")
    with pytest.raises(ValueError, match=r"^--constrained is for searches\. Leave it out\.$"):
        flags.refuse(flags.of_sections(DecodingOptions), "is for searches")


@pytest.mark.parametrize(
    ("argument", "place"),
    [
        ("--constrained=true", "command line"),
        ("--flagfile=parsing_small.flags", "parsing_small.flags, line "),
    ],
)
def test_flags_that_the_task_of_a_model_has_no_use_for_are_refused(argument, place, monkeypatch):
    give(monkeypatch, argument)
    flags.refuse_foreign("parsing", "m")
    with pytest.raises(ValueError) as raised:
        flags.refuse_foreign("masking", "m")
    assert str(raised.value).startswith(place)
    assert "is for --task=" in str(raised.value)
    assert str(raised.value).endswith(", and m is of the task masking. Leave it out.")


D_MODEL = "--d_model: toy.flags, line 8"


TOY = "--flagfile=toy.flags --seed=3"
XX = "source_language=xx: m has de. `target_language` must be one of its_source_language."


@pytest.mark.parametrize(
    ("typed", "error", "expected"),
    [
        (TOY, "`d_model` must be even.", f"`d_model` must be even. ({D_MODEL})"),
        (TOY, "--d_ff, --d_model.", f"--d_ff, --d_model. ({D_MODEL}; --d_ff: toy.flags, line 9)"),
        (TOY, "`source_language`.", "`source_language`. (--source_language: toy.flags, line 4)"),
        (TOY, *["a/seed=3 and d_models=4 and --num_layers_=3 and top_k=1"] * 2),
        ("--seed=3 --top_k=1", "seed=3 (top_k=1, top_p=2)", "--seed=3 (--top_k=1, top_p=2)"),
        ("", XX, XX),
        (
            "--from_language=xx --to_language=de",
            XX,
            "--from_language=xx: m has de. --to_language must be one of its_source_language.",
        ),
        (
            "--flagfile=multi30k.flags --test_prefix=test",
            "Check `prefixes`.",
            "Check `prefixes`. (--train_prefix: multi30k.flags, line 5; "
            "--valid_prefix: multi30k.flags, line 6)",
        ),
    ],
)
def test_an_error_names_flags_as_they_were_typed_and_their_files(
    typed, error, expected, monkeypatch
):
    give(monkeypatch, *typed.split())
    assert flags._with_places(error) == expected


def test_an_error_of_the_system_names_the_flag_of_its_path(monkeypatch, tmp_path):
    FLAGS = flags_of("export", f"--model_dir={tmp_path / 'run'}")
    give(monkeypatch, f"--model_dir={tmp_path / 'run'}")
    path = tmp_path / "run" / "model.json"
    error = PermissionError(13, "Permission denied", str(path))
    expected = f"--model_dir={tmp_path / 'run'}: Permission denied: {path}. Name another."
    assert flags._reason(error, FLAGS) == expected
    elsewhere = PermissionError(13, "Permission denied", "/x/y")
    assert flags._reason(elsewhere, FLAGS) == "/x/y: Permission denied."
    # The node of a graph is no part of a reason.
    node = "{{function_node __wrapped__SaveV2_dtypes_1_device_/job:localhost/replica:0}}"
    message = f"{node} a/b; No space left on device [Op:SaveV2]"
    error = tf.errors.ResourceExhaustedError(None, None, message)
    assert flags._reason(error, None) == "a/b; No space left on device"


def flags_with(traceback):
    """The flags of a command that has --traceback alone."""
    FLAGS = absl_flags.FlagValues()
    absl_flags.DEFINE_bool("traceback", traceback, "", flag_values=FLAGS)
    FLAGS.mark_as_parsed()
    return FLAGS


# TensorFlow's error about a file that is no picture.
DETECTED = "Graph execution error:\n\nDetected at node A defined at (most recent call last):\n"
NO_PICTURE = "Unknown image file format.\n\t [[{{node A}}]] [Op:__inference_f_6]"
ERRORS = {
    "package": (ImportError("pip install it\nand more"), "pip install it"),
    "memory": (MemoryError("Unable to allocate 60 GiB"), "Unable to allocate 60 GiB"),
    **{
        place.strip(): (
            tf.errors.InvalidArgumentError(None, None, f"{DETECTED}{place}{NO_PICTURE}"),
            "Unknown image file format.",
        )
        for place in ("  File f.py, line 5, in main\n\n", "<stack unavailable>\n")
    },
    "assertion": (
        tf.errors.InvalidArgumentError(
            None, None, f"{DETECTED}assertion failed: [x[1] must be a. Received:] [b] [Op:F]"
        ),
        "x[1] must be a. Received: [b]",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_printed_as_its_reason_in_one_line(capsys, name):
    error, reason = ERRORS[name]

    def main(_):
        raise error

    with pytest.raises(SystemExit):
        flags._call(main, flags_with(traceback=False))
    assert capsys.readouterr().err == f"error: {reason}\n"
    with pytest.raises(type(error)):
        flags._call(main, flags_with(traceback=True))


def test_threads_are_set_before_a_corpus_is_read(monkeypatch):
    from keras_transformer import evaluate, tune

    events = []

    def read(*_):
        events.append("corpus")
        raise ValueError("enough")

    spread = "keras_transformer.startup.spread_over_cores"
    monkeypatch.setattr(spread, lambda: events.append("threads"))
    monkeypatch.setattr("keras_transformer.runs.model_path.description_of", lambda _: {})
    read.searches = True
    task = types.SimpleNamespace(scorer=read)
    monkeypatch.setattr("keras_transformer.tasks.task_class", lambda _: task)
    monkeypatch.setattr("keras_transformer.tasks.score.validation_of", read)
    for command, name in ((evaluate, "evaluate"), (tune, "tune")):
        with pytest.raises(ValueError, match="enough"):
            command.main(flags_of(name, "--model=m"))
    assert events == ["threads", "corpus"] * 2


PATHS = {
    "model": ("~/runs/a,~/runs/b", "{home}/runs/a,{home}/runs/b"),
    "export_dir": ("~/saved", "{home}/saved"),
    "data_dir": ("text/~draft", "text/~draft"),
    "input": ("-", "-"),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_tilde_that_the_shell_left_alone_is_expanded(name, monkeypatch):
    monkeypatch.setenv("HOME", "/home/anna")
    path, expected = PATHS[name]
    command = next(command for command in COMMANDS if name in names_of(command))
    choice = ["--corpus=lines"] if name == "data_dir" else []
    FLAGS = flags_of(command, *choice, f"--{name}={path}")
    assert FLAGS[name].value == expected.format(home="/home/anna")


# Their help speaks of files, but their values are no paths.
NO_PATHS = {
    *("dump_flags", "model_name", "pictures", "shards", "signature"),
    *("test_prefix", "train_prefix", "valid_prefix"),
    # Flag files and flags: `expand_flagfiles` finds the files.
    "schedules",
}


def test_every_flag_of_a_file_or_folder_is_a_path():
    """By its name, or by its help, which speaks of a file or folder."""
    names = {
        name
        for name in EVERY_FLAG
        if re.search("(_dir|_file)$", name)
        or re.search(r"\b(file|folder)s?\b", EVERY_FLAG[name].help or "", re.IGNORECASE)
    }
    no_paths = {name for name in names if not isinstance(EVERY_FLAG[name].parser, PathParser)}
    assert no_paths == NO_PATHS
    assert "trees" in names
    assert len(names - NO_PATHS) > 10


def test_flags_of_scores_that_change_nothing_are_refused(monkeypatch):
    from keras_transformer import evaluate

    def refusal(argument, searches, *more):
        give(monkeypatch, argument)
        try:
            evaluate._refuse(flags_of("evaluate", *more))
            evaluate._refuse_search(types.SimpleNamespace(searches=searches), "m")
        except ValueError as error:
            return str(error)
        return None

    significance = "--significance=approximate_randomization"
    for arguments, words in [
        (("--decode_tokens=9", False), "--decode_tokens is for searches, and scoring m has none."),
        ((significance, True), "--significance tests the difference from --baseline_file, which"),
        (("--num_hypotheses=2", True), "--num_hypotheses is for commands that write several tra"),
        *(
            (("--split=valid", True, f"--{name}=a"), "--split is for the corpus of the model, and")
            for name in ("source_file", "reference_file")
        ),
    ]:
        assert refusal(*arguments).startswith(words)
        assert refusal(*arguments).endswith(" Leave it out.")
    assert refusal("--decode_tokens=9", True) is None
    assert refusal(significance, True, "--baseline_file=b") is None
    assert refusal("--split=valid", True) is None
    # A flag of searches is refused before the scorer reads its text.
    give(monkeypatch, "--decode_tokens=9")
    for start in ("start_tensorflow", "spread_over_cores"):
        monkeypatch.setattr(f"keras_transformer.startup.{start}", lambda: 1)
    monkeypatch.setattr(model_path, "description_of", lambda model: {"task": "masking"})
    task = types.SimpleNamespace(scorer=types.SimpleNamespace(searches=False))
    monkeypatch.setattr(tasks, "task_class", lambda name: task)
    with pytest.raises(ValueError, match=r"^--decode_tokens is for searches"):
        evaluate.main(flags_of("evaluate", "--model=m"))


@pytest.mark.parametrize(
    "name", ["vocabulary_size", "vocabularies", "vocabulary_model", "vocabulary_sentences"]
)
def test_flags_of_learning_are_refused_beside_a_vocabulary(name, monkeypatch, tmp_path):
    from keras_transformer import prepare

    FLAGS = types.SimpleNamespace(vocabulary="a", output_dir=str(tmp_path))
    give(monkeypatch, f"--{name}=9")
    error = rf"^--{name} is for a vocabulary that is learned, and --vocabulary names one\. Leave it"
    with pytest.raises(ValueError, match=error):
        prepare._refuse(FLAGS)
    prepare._refuse(types.SimpleNamespace(vocabulary=None, output_dir=str(tmp_path)))


def test_another_engine_s_search_has_no_flags(monkeypatch, tmp_path):
    from keras_transformer import export
    from keras_transformer.tasks import TASKS

    FLAGS = flags_of("export", f"--model_dir={tmp_path}", "--format=ctranslate2")
    options = TASKS["translation"].export_options
    kind = types.SimpleNamespace(export_options=options, convert=lambda *_: "written")
    give(monkeypatch, "--format=ctranslate2", "--max_length=9")
    with pytest.raises(ValueError, match=r"^--max_length has no effect: ctranslate2 has its own"):
        export.export(kind, FLAGS)
    give(monkeypatch, "--format=ctranslate2")
    export.export(kind, FLAGS)


@pytest.mark.parametrize(("form", "loaded_in"), [("saved_model", "bfloat16"), ("onnx", "float32")])
def test_a_saved_model_has_the_precision_that_its_run_is_loaded_in(tmp_path, form, loaded_in):
    from keras_transformer import export
    from keras_transformer.tasks import TASKS

    (tmp_path / "model.json").write_text("{}")
    kind = mock.Mock(export_options=TASKS["translation"].export_options, trial="")
    precision = "bfloat16" if form == "saved_model" else "int8"
    chosen = (f"--format={form}", f"--precision={precision}", f"--export_dir={tmp_path / 'saved'}")
    export.export(kind, flags_of("export", f"--model_dir={tmp_path}", *chosen))
    assert kind.reload.call_args.args[1]["precision"] == loaded_in
    assert kind.write.call_args.args[-2] == precision


@pytest.mark.parametrize(
    ("sizes", "advised"), [(["1", "2", "8"], "2,8"), (["1"], "2,4,8"), (["2", "4"], None)]
)
def test_a_search_that_other_commands_refuse_is_not_tuned(sizes, advised):
    from keras_transformer.evaluation import tuning

    beam_sizes = tuning.beam_sizes_of(sizes, 1000)
    if not advised:
        tuning.refuse_one_hypothesis(0.2, beam_sizes)
        return
    with pytest.raises(ValueError, match=rf"a beam of 1 has one.* Pass --beam_sizes={advised}\.$"):
        tuning.refuse_one_hypothesis(0.2, beam_sizes)


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenPipeError])
@pytest.mark.parametrize(
    ("typed", "writes"),
    [
        ({"max_steps": 1, "model_dir": 1}, True),
        # Such as import_model, prepare, and visualize.
        ({"model_dir": 1}, True),
        ({"output_dir": 1}, True),
        ({"output": types.SimpleNamespace(value="a.svg")}, True),
        ({"output": types.SimpleNamespace(value="-")}, False),
        ({}, False),
    ],
)
def test_only_training_says_that_it_resumes(typed, writes, error, monkeypatch, capsys):
    def interrupted(*_):
        raise error

    monkeypatch.setattr(flags, "start_tensorflow", lambda: None)
    monkeypatch.setattr(flags, "leave_standard_output", lambda: None)
    # A reader that leaves standard output, such as `head`, is no error.
    is_error = writes or error is KeyboardInterrupt
    with pytest.raises(SystemExit) if is_error else contextlib.nullcontext():
        flags._call(interrupted, typed)
    line = capsys.readouterr().err
    assert line.startswith("error: ") == is_error
    assert ("the same command resumes" in line) == ("max_steps" in typed)


READS = """
import sys
from absl import flags
from keras_transformer import translate
from keras_transformer.flags.arguments import parse
try:
    parse(flags.FlagValues(), sys.argv[1:], translate.SECTIONS)
except ValueError:
    pass
print("keras_transformer.train" in sys.modules)
"""


# The second is the control: to say whose flag it is, all commands are imported.
@pytest.mark.parametrize(("flag", "imports"), [("--beam_size=2", False), ("--d_model=8", True)])
def test_only_a_flag_of_other_commands_imports_them(flag, imports):
    assert printed(sys.executable, "-c", READS, flag) == f"{imports}\n"


INTERRUPTED = """
import gc, os, signal, sys, threading
from keras_transformer import end_when_interrupted, flags

def interrupt(phase, info):
    gc.callbacks.remove(interrupt)
    os.kill(os.getpid(), signal.SIGINT)

def main(FLAGS):
    gc.callbacks.append(interrupt)
    gc.collect()
    threading.Event().wait(20)
    print("went on")

sys.modules["tensorflow"] = None  # It is not needed, and its import takes seconds.
signal.signal(signal.SIGINT, end_when_interrupted)
flags.run(main, ())
"""

STARTING = """
import signal, sys
from keras_transformer import end_when_interrupted, flags
from keras_transformer.tensorflow_errors import silence

def start():
    with silence():
        if IS_STARTING:
            signal.raise_signal(signal.SIGINT)

def main(FLAGS):
    signal.raise_signal(signal.SIGINT)

flags.start_tensorflow = start
signal.signal(signal.SIGINT, end_when_interrupted)
flags.run(main, (), on_interrupt=flags.stop_at_once)
"""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (INTERRUPTED, "interrupted."),
        ("IS_STARTING = True" + STARTING, "interrupted."),
        ("IS_STARTING = False" + STARTING, flags.RESUMES),
    ],
    ids=["while garbage is collected", "while TensorFlow starts", "of one that stops at once"],
)
def test_an_interruption_is_not_lost_and_is_reported(program, message):
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", f"error: {message}\n")
