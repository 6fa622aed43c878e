"""Every flag of every command, and errors of one line.

A command names the sections of options that it reads (`run`), so that its `--help` shows no others;
only commands read flags.
"""

import os
import pathlib
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from absl import flags as absl_flags
from absl import logging

from keras_transformer import end_when_interrupted
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.flagfiles import Argument
from keras_transformer.flags.arguments import parse
from keras_transformer.flags.definition import PathParser
from keras_transformer.flags.help_pages import help_of
from keras_transformer.flags.of_commands import Dump, Errors
from keras_transformer.flags.scopes import read_sections, tasks_of
from keras_transformer.runs.model_path import portable_folder
from keras_transformer.startup import start_tensorflow
from keras_transformer.streams import leave_standard_output
from keras_transformer.tensorflow_errors import reason_of
from pipelines.documents import BILINGUAL, ENDINGS, UNREAD, format_of
from pipelines.options import Options, Sections, recipe, settings

# Where each flag stands that the command was given, by name.
PLACES: dict[str, Argument] = {}
# No part of a recipe.
OF_ONE_CALL = (Dump, Errors)
TWO_FILES = "--source_file and --reference_file are needed: two files of as many lines."
# What errors say of flags that some commands cannot do without.
REQUIRED = {
    "model_dir": "--model_dir is missing: the folder of a run, such as runs/home_assistant_en_de.",
    "model": "--model is missing: a run's folder, or a SavedModel such as "
    "saved_models/home_assistant_en_de.",
    "model_base_path": "--model_base_path is missing: a SavedModel's folder of versions, such as "
    "saved_models/home_assistant_en_de.",
    "teacher": "--teacher is missing, or --back_translate: a model that translates the text, such "
    "as runs/en_de.",
    "output_dir": "--output_dir is missing: the folder of the prepared corpus, such as "
    "prepared/mine.",
    "from": "--from is missing: a folder with decoder.yml, a checkpoint of OpenNMT-tf, or "
    "config.json and *.safetensors.",
    "source_file": TWO_FILES,
    "reference_file": TWO_FILES,
}
RESUMES = "interrupted. What was saved stays; the same command resumes from there."
# The flags of a request's languages. Those of the names on the left are flags of corpora.
LANGUAGES = {"source_language": "from_language", "target_language": "to_language"}
# How errors name flags, and arguments that are called as they are.
MENTIONED = re.compile(r"--(\w+)|`(\w+)`|\b(\w+)=")
SAID = re.compile(r"(?<![\w./-])(\w+)=")


def values(FLAGS: absl_flags.FlagValues, *sections: type[Options]) -> dict:
    """The values of the flags of some sections that are there, by name."""
    return {name: getattr(FLAGS, name) for name in of_sections(*sections) if name in FLAGS}


def of_sections(*sections: type[Options]) -> list[str]:
    """The names of the options of some sections."""
    return [name for kind in sections for name in settings(kind)]


def required(FLAGS: absl_flags.FlagValues, name: str) -> str:
    """Read a flag without a default that a command cannot do without, one of `REQUIRED`."""
    if value := getattr(FLAGS, name):
        return value
    raise ValueError(REQUIRED[name])


def translation_options(FLAGS: absl_flags.FlagValues) -> dict:
    """`decoding_options`, and the languages."""
    return decoding_options(FLAGS) | languages(FLAGS)


def languages(FLAGS) -> dict[str, str]:
    """The source_language and target_language that flags give, of a model of many languages."""
    return {name: given for name, flag in LANGUAGES.items() if (given := getattr(FLAGS, flag))}


def decoding_options(FLAGS: absl_flags.FlagValues) -> dict:
    """The options of `DecodingOptions` that flags give. Others stay as a model was exported."""
    names = [*settings(DecodingOptions), "seed"]
    given = {name: FLAGS[name].value for name in names if name in FLAGS and FLAGS[name].present}
    if not given.get("samples"):
        # Training, which draws no translations, has a seed as well, and so has its flag file.
        given.pop("seed", None)
    return given


def refuse(names: Iterable[str], reason: str) -> None:
    """Refuse flags of the command line that change nothing. A flag file serves several commands."""
    for name in names:
        if name in PLACES and not PLACES[name].file:
            raise ValueError(f"--{name} {reason}. Leave it out.")


def refuse_foreign(task: str, model: str) -> None:
    """Refuse flags that the task of a model has no use for, wherever they stand."""
    from keras_transformer.tasks import TASKS

    for name, argument in PLACES.items():
        tasks = tasks_of(name, TASKS)
        if task not in tasks:
            raise ValueError(
                f"{argument.place}: --{name} is for --task={' or '.join(tasks)}, and {model} is of "
                f"the task {task}. Leave it out."
            )


def check_stream(FLAGS: absl_flags.FlagValues, **others: bool) -> None:
    """Refuse --stream together with files."""
    if FLAGS.stream and (FLAGS.input != "-" or FLAGS.output != "-" or any(others.values())):
        *first, last = (f"--{name}" for name in ("input", "output", *others))
        raise ValueError(
            "--stream answers lines of standard input on standard output: leave out "
            f"{', '.join(first)} and {last}."
        )


def file_format(FLAGS: absl_flags.FlagValues) -> str:
    """--file_format, or that of the ending of --input. What has no room in it is refused."""
    kind = FLAGS.file_format or format_of(FLAGS.input)
    if kind in UNREAD:
        raise ValueError(
            f"files of {kind} are not read. Received: {FLAGS.input}. Convert it to one of "
            f"{', '.join(ENDINGS)}, or add --file_format=lines to translate each line as it stands."
        )
    if FLAGS.all and kind not in BILINGUAL:
        raise ValueError(
            f"--all is for --file_format={' or '.join(BILINGUAL)}. Received: "
            f"--file_format={kind}. Leave it out."
        )
    if kind != "lines" and (FLAGS.json or FLAGS.prefix_file or FLAGS.stream):
        raise ValueError(
            f"--file_format={kind} is written as it was read: leave out --json, --prefix_file and "
            "--stream."
        )
    return kind


def run(
    main: Callable,
    sections: Sections,
    of_tasks: Mapping[str, Sections] | None = None,
    everyday: Sequence[str] = (),
    on_interrupt: Callable = signal.default_int_handler,
) -> None:
    """Parse the command line, start TensorFlow unless the model needs none, call `main` with the
    flags, and print errors in one line. The command reads sections, and those of its task;
    `everyday` are the options that `--help` shows first; `on_interrupt` answers Ctrl-C.
    """
    open_closed()
    # As what is translated, in any locale: a letter that it does not have must end no training.
    if sys.__stdout__:
        sys.__stdout__.reconfigure(encoding="utf-8", errors="surrogateescape")
    # Libraries log warnings. Our pipelines also log what takes long, such as a download.
    logging.set_verbosity(logging.WARNING)
    pipelines = logging.logging.getLogger("pipelines")
    pipelines.setLevel(logging.logging.INFO)
    pipelines.propagate = False
    pipelines.addHandler(logging.logging.StreamHandler())
    doc = sys.modules[main.__module__].__doc__ or ""
    FLAGS = _parse(sys.argv, (*sections, Errors), of_tasks or {}, doc, everyday)
    if signal.getsignal(signal.SIGINT) is end_when_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _interrupt_again
    _call(main, FLAGS, on_interrupt)


def _interrupt_again(lost):
    """Repeat a Ctrl-C that a callback of garbage or a finalizer had: Python goes on after these."""
    if lost.exc_type is KeyboardInterrupt:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)


def stop_at_once(*_) -> None:
    """Answer Ctrl-C of a command that writes whole files and resumes: nothing has to be cleaned up,
    and Beam, and what runs in it, would take the interruption for an error.
    """
    print(f"error: {RESUMES}", file=sys.stderr, flush=True)
    os._exit(130)


def open_closed() -> None:
    """Open what the caller of this process closed. Else the next file would get its number, and
    what is printed would be written into that.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _parse(argv, sections, of_tasks, doc="", everyday=()):
    """The flags of a command line; help or a recipe that it asks for is printed instead."""
    try:
        if page := help_of(argv[1:], doc, sections, of_tasks, everyday):
            print(page, flush=True)
            sys.exit()
        FLAGS = absl_flags.FlagValues()
        places = parse(FLAGS, argv[1:], sections, of_tasks)
        if "dump_flags" in FLAGS and FLAGS.dump_flags:
            values = FLAGS.flag_values_dict()
            read = read_sections(sections, of_tasks, values)
            kept = [one for one in read if one not in OF_ONE_CALL]
            print(recipe(kept, values), end="", flush=True)
            sys.exit()
    except BrokenPipeError:
        leave_standard_output()
        sys.exit()
    except (OSError, ValueError) as error:
        _exit(" ".join(str(error).split()), status=2)
    PLACES.clear()
    PLACES.update(places)
    # Libraries look at absl's own.
    absl_flags.FLAGS(argv[:1])
    return FLAGS


def _call(main, FLAGS, on_interrupt=signal.default_int_handler):
    try:
        paths = [FLAGS[name].value for name in ("model", "model_base_path") if name in FLAGS]
        if not any(map(portable_folder, filter(None, paths))):
            start_tensorflow()
        # Not before: the standard error is turned off while TensorFlow starts.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, on_interrupt)
        main(FLAGS)
        # What is printed at exit would be told by a traceback if it cannot be.
        sys.stdout.flush()
    except KeyboardInterrupt:
        # Of the commands that come here, only training resumes where it was.
        _exit(RESUMES if "max_steps" in FLAGS else "interrupted.", status=130)
    except BrokenPipeError:
        leave_standard_output()
        # What was to write a folder or a file may not have come to it.
        is_file = "output" in FLAGS and FLAGS["output"].value != "-"
        if is_file or "model_dir" in FLAGS or "output_dir" in FLAGS:
            remedy = RESUMES if "max_steps" in FLAGS else "run the command again."
            _exit(f"the reader of standard output left: {remedy}")
    except Exception as error:
        told = (ValueError, OSError, ImportError, MemoryError)
        if tensorflow := sys.modules.get("tensorflow"):
            told += (tensorflow.errors.OpError,)
        if FLAGS.traceback or not isinstance(error, told):
            raise
        _exit(_with_places(_reason(error, FLAGS)))


def _reason(error, FLAGS):
    """The line of an error that says what is wrong, of the system's with the flag to blame."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the working folder was deleted. Change into another."
    if isinstance(error, OSError) and error.errno and isinstance(error.filename, str):
        return _of_a_file(error, FLAGS)
    return reason_of(error)


def _of_a_file(error, FLAGS):
    """What an error of the system says, and the flag that named the file or a folder above it."""
    path = pathlib.Path(error.filename).absolute()
    for name in PLACES:
        if isinstance(FLAGS[name].parser, PathParser):
            for given in filter(None, FLAGS[name].value.split(",")):
                if path.is_relative_to(pathlib.Path(given).absolute()):
                    return f"--{name}={given}: {error.strerror}: {path}. Name another."
    return f"{error.filename}: {error.strerror}."


def _with_places(reason):
    """A reason, with the place of each flag that it names and that stands in a flag file."""
    for name, flag in LANGUAGES.items():
        if flag in PLACES:
            reason = re.sub(rf"`?\b{name}\b`?", f"--{flag}", reason)
    reason = SAID.sub(lambda one: f"--{one[0]}" if one[1] in PLACES else one[0], reason)
    names = {name for found in MENTIONED.findall(reason) for name in found}
    if "prefixes" in names:
        names |= {"train_prefix", "valid_prefix", "test_prefix"}
    found = ((name, one.place) for name, one in PLACES.items() if one.file and name in names)
    places = [f"--{name}: {place}" for name, place in found]
    return f"{reason} ({'; '.join(places)})" if places else reason


def _exit(message: str, status: int = 1):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
