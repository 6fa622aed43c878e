"""The command line of every command: its flags, its help, and errors of one line.

A command names the sections of options that it reads (`run`), and its `--help` shows only these.
Only commands read flags.
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
from keras_transformer.streams import leave_standard_output, require_writable
from keras_transformer.tensorflow_errors import reason_of
from pipelines.options import Options, Sections, recipe, settings

# The place of each flag that is set, by name.
PLACES: dict[str, Argument] = {}
# Sections that concern a single call, and are left out of a recipe.
OF_ONE_CALL = (Dump, Errors)
TWO_FILES = "--source_file and --reference_file are needed: two files with equally many lines."
# The error for each required flag that is missing.
REQUIRED = {
    "model_dir": "--model_dir is missing: the folder of a run, such as runs/home_assistant_en_de.",
    "model": "--model is missing: a run's folder, or a SavedModel such as "
    "saved_models/home_assistant_en_de.",
    "model_base_path": "--model_base_path is missing: a SavedModel's folder of versions, such as "
    "saved_models/home_assistant_en_de.",
    "teacher": "--teacher or --back_translate is missing: a model that translates the text, such "
    "as runs/en_de.",
    "output_dir": "--output_dir is missing: the folder of the prepared corpus, such as "
    "prepared/mine.",
    "from": "--from is missing: a folder with decoder.yml, a checkpoint of OpenNMT-tf, or "
    "config.json and *.safetensors.",
    "source_file": TWO_FILES,
    "reference_file": TWO_FILES,
}
RESUMES = "interrupted. What was saved stays; the same command resumes from there."
# The flags of a request's languages, by option. The options' own names are flags of corpora.
LANGUAGES = {"source_language": "from_language", "target_language": "to_language"}
# How errors mention a flag, or an argument of the same name; and how they give its value.
MENTIONED = re.compile(r"--(\w+)|`(\w+)`|\b(\w+)=")
ASSIGNED = re.compile(r"(?<![\w./-])(\w+)=")


def values(FLAGS: absl_flags.FlagValues, *sections: type[Options]) -> dict:
    """Return the values of some sections' flags, by name, as far as the command has the flags."""
    return {name: getattr(FLAGS, name) for name in of_sections(*sections) if name in FLAGS}


def of_sections(*sections: type[Options]) -> list[str]:
    """Return the names of the options of some sections."""
    return [name for kind in sections for name in settings(kind)]


def required(FLAGS: absl_flags.FlagValues, name: str) -> str:
    """Return the value of a flag in `REQUIRED`; a ValueError says that it is missing."""
    if value := getattr(FLAGS, name):
        return value
    raise ValueError(REQUIRED[name])


def translation_options(FLAGS: absl_flags.FlagValues) -> dict:
    """Return `decoding_options` and the languages."""
    return decoding_options(FLAGS) | languages(FLAGS)


def languages(FLAGS) -> dict[str, str]:
    """Return source_language and target_language, as far as flags set them."""
    return {name: code for name, flag in LANGUAGES.items() if (code := getattr(FLAGS, flag))}


def decoding_options(FLAGS: absl_flags.FlagValues) -> dict:
    """Return the options of `DecodingOptions` that flags set. The rest stay as in the model."""
    names = [*settings(DecodingOptions), "seed"]
    options = {name: FLAGS[name].value for name in names if name in FLAGS and FLAGS[name].present}
    if not options.get("samples"):
        # The flag file of a training may have a seed, which is not meant for decoding.
        options.pop("seed", None)
    return options


def refuse(names: Iterable[str], reason: str) -> None:
    """Refuse flags that change nothing, except in flag files, which serve several commands."""
    for name in names:
        if name in PLACES and not PLACES[name].file:
            raise ValueError(f"--{name} {reason}. Leave it out.")


def refuse_foreign(task: str, model: str) -> None:
    """Refuse flags that the task of a model has no use for, also in flag files."""
    from keras_transformer.tasks import TASKS

    for name, argument in PLACES.items():
        tasks = tasks_of(name, TASKS)
        if task not in tasks:
            raise ValueError(
                f"{argument.place}: --{name} is for --task={' or '.join(tasks)}, and {model} is of "
                f"the task {task}. Leave it out."
            )


def require_output(FLAGS: absl_flags.FlagValues, but: str | None = None) -> None:
    """Refuse, before a command does its work, an --output that cannot be written, or that another
    flag names, too, except for the flag `but`.
    """
    inputs = (path for name, path in _paths(FLAGS) if name not in ("output", but))
    require_writable(FLAGS.output, *inputs)


def check_stream(FLAGS: absl_flags.FlagValues, **conflicts: bool) -> None:
    """Refuse --stream with files, or with another flag, by name, that is in conflict with it."""
    if FLAGS.stream and (FLAGS.input != "-" or FLAGS.output != "-" or any(conflicts.values())):
        *first, last = (f"--{name}" for name in ("input", "output", *conflicts))
        raise ValueError(
            "--stream answers lines of standard input on standard output: leave out "
            f"{', '.join(first)} and {last}."
        )


def run(
    main: Callable,
    sections: Sections,
    of_tasks: Mapping[str, Sections] | None = None,
    everyday: Sequence[str] = (),
    on_interrupt: Callable = signal.default_int_handler,
    task: type | None = None,
) -> None:
    """Parse the command line, start TensorFlow unless the model needs none, call `main` with the
    flags, and print errors in one line. The command reads `sections` and those of its task; its
    `--help` shows the docstring of the module of `task`, if it is a program's own, else of `main`,
    and the `everyday` options first; `on_interrupt` handles Ctrl-C.
    """
    open_closed()
    # Whatever the locale: a letter that it lacks must not end a training.
    if sys.__stdout__:
        sys.__stdout__.reconfigure(encoding="utf-8", errors="surrogateescape")
    # Libraries log warnings only; our pipelines also log slow steps, such as a download.
    logging.set_verbosity(logging.WARNING)
    pipelines = logging.logging.getLogger("pipelines")
    pipelines.setLevel(logging.logging.INFO)
    pipelines.propagate = False
    pipelines.addHandler(logging.logging.StreamHandler())
    doc = sys.modules[(task or main).__module__].__doc__ or ""
    FLAGS = _parse(sys.argv, (*sections, Errors), of_tasks or {}, doc, everyday)
    if signal.getsignal(signal.SIGINT) is end_when_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _interrupt_again
    _call(main, FLAGS, on_interrupt)


def _interrupt_again(unraisable):
    """Repeat a Ctrl-C that came in a finalizer or in garbage collection, where Python drops it."""
    if unraisable.exc_type is KeyboardInterrupt:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


def stop_at_once(*_) -> None:
    """Handle Ctrl-C for a command that writes whole files and resumes: nothing needs cleaning up,
    and Beam would report the interruption as an error.
    """
    print(f"error: {RESUMES}", file=sys.stderr, flush=True)
    os._exit(130)


def open_closed() -> None:
    """Open the standard streams that the caller of this process closed. Otherwise the next file
    that is opened would get a stream's number, and what is printed would be written into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _parse(argv, sections, of_tasks, doc="", everyday=()):
    """Parse the flags of a command line. If it asks for help or its recipe, print that and exit."""
    try:
        if page := help_of(argv[1:], doc, sections, of_tasks, everyday):
            print(page, flush=True)
            sys.exit()
        FLAGS = absl_flags.FlagValues()
        places = parse(FLAGS, argv[1:], sections, of_tasks)
        if "dump_flags" in FLAGS and FLAGS.dump_flags:
            values = FLAGS.flag_values_dict()
            every = read_sections(sections, of_tasks, values)
            of_recipe = [section for section in every if section not in OF_ONE_CALL]
            print(recipe(of_recipe, values), end="", flush=True)
            sys.exit()
    except BrokenPipeError:
        leave_standard_output()
        sys.exit()
    except (OSError, ValueError) as error:
        _exit(" ".join(str(error).split()), status=2)
    PLACES.clear()
    PLACES.update(places)
    # Libraries read absl's global flags.
    absl_flags.FLAGS(argv[:1])
    return FLAGS


def _call(main, FLAGS, on_interrupt=signal.default_int_handler):
    try:
        paths = [FLAGS[name].value for name in ("model", "model_base_path") if name in FLAGS]
        if not any(map(portable_folder, filter(None, paths))):
            start_tensorflow()
        # Not before: standard error is silenced while TensorFlow starts.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, on_interrupt)
        main(FLAGS)
        # Here, where a failure is caught: at exit it would print a traceback.
        sys.stdout.flush()
    except KeyboardInterrupt:
        # Of the commands without a handler of their own, only training resumes.
        _exit(RESUMES if "max_steps" in FLAGS else "interrupted.", status=130)
    except BrokenPipeError:
        leave_standard_output()
        # A command that writes a folder or a file may not have come to it.
        is_file = "output" in FLAGS and FLAGS["output"].value != "-"
        if is_file or "model_dir" in FLAGS or "output_dir" in FLAGS:
            remedy = RESUMES if "max_steps" in FLAGS else "run the command again."
            _exit(f"the reader of standard output left: {remedy}")
    except Exception as error:
        expected = (ValueError, OSError, ImportError, MemoryError)
        if tensorflow := sys.modules.get("tensorflow"):
            expected += (tensorflow.errors.OpError,)
        if FLAGS.traceback or not isinstance(error, expected):
            raise
        _exit(_with_places(_reason(error, FLAGS)))


def _reason(error, FLAGS):
    """Return one line that says what is wrong; for a system error, with the flag to blame."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the working folder was deleted. Change into another."
    if isinstance(error, OSError) and error.errno and isinstance(error.filename, str):
        return _file_reason(error, FLAGS)
    return reason_of(error)


def _file_reason(error, FLAGS):
    """Return the reason of a file's error, and the flag that names the file or a folder of it."""
    path = pathlib.Path(error.filename).absolute()
    for name, root in _paths(FLAGS):
        if path.is_relative_to(pathlib.Path(root).absolute()):
            return f"--{name}={root}: {error.strerror}: {path}. Name another."
    return f"{error.filename}: {error.strerror}."


def _paths(FLAGS):
    """Yield the name and the path of each flag that is set to a path, or to several."""
    for name in FLAGS:
        if FLAGS[name].present and isinstance(FLAGS[name].parser, PathParser):
            value = FLAGS[name].value
            yield from ((name, path) for path in (value, *value.split(",")) if path)


def _with_places(reason):
    """Add to a reason the place of each flag that it mentions and that a flag file sets."""
    for name, flag in LANGUAGES.items():
        if flag in PLACES:
            reason = re.sub(rf"`?\b{name}\b`?", f"--{flag}", reason)
    reason = ASSIGNED.sub(lambda match: f"--{match[0]}" if match[1] in PLACES else match[0], reason)
    names = {name for groups in MENTIONED.findall(reason) for name in groups}
    if "prefixes" in names:
        names |= {"train_prefix", "valid_prefix", "test_prefix"}
    in_files = {name: flag for name, flag in PLACES.items() if flag.file and name in names}
    places = [f"--{name}: {flag.place}" for name, flag in in_files.items()]
    return f"{reason} ({'; '.join(places)})" if places else reason


def _exit(message: str, status: int = 1):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
