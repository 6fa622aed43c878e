"""The package's public names, what importing it and printing help leave unchanged, and the names of
classes in `.keras` files, which stay when a class moves.
"""

import configparser
import importlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import keras
import pytest
from command_flags import COMMANDS
from shell import printed

import keras_transformer

ROOT = pathlib.Path(keras_transformer.__file__).parents[1]
SEARCHING = ("evaluate", "export", "generate", "parse", "train", "translate", "visualize")
SEARCHING += ("translate_corpus",)
# Prints what a program has changed in its process.
WATCH = """
import json, os, sys
{first}
def state():
    streams = [os.stat(number) for number in range(3)]
    return dict(os.environ), [(stream.st_dev, stream.st_ino) for stream in streams]
before = state()
{program}
changed = [old != new for old, new in zip(before, state())]
heavy = sorted({{"tensorflow", "keras", "keras_transformer.models.transformer"}} & set(sys.modules))
print(json.dumps([*changed, heavy]))
"""
IMPORTS = "import keras_transformer.layers; from keras_transformer import MultiHeadAttention"
# TensorFlow counts as imported, so that the control need not wait for it.
STARTS = (
    "import types; sys.modules['tensorflow'] = types.ModuleType('tensorflow')\n"
    "from keras_transformer import startup; startup.start_tensorflow(); os.dup2(1, 2)"
)


def watched(program, first="", **environment):
    """Whether a program changes the environment, whether its streams, and what it imports.

    `first` runs before, and may change what it likes.
    """
    watching = WATCH.format(program=program, first=first)
    output = printed(sys.executable, "-c", watching, env=os.environ | environment)
    return json.loads(output.splitlines()[-1])


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")
def test_importing_the_layers_changes_nothing_else():
    assert watched(IMPORTS, "import keras", KERAS_BACKEND="jax") == [False, False, ["keras"]]


def test_control_starting_tensorflow_is_seen():
    variables = ("TF_CPP_MIN_LOG_LEVEL", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")
    unset = "\n".join(f"before[0].pop({name!r}, None)" for name in variables)
    assert watched(f"{unset}\n{STARTS}") == [True, True, ["tensorflow"]]


def test_importing_the_package_imports_nothing_heavy():
    assert watched("import keras_transformer; dir(keras_transformer)") == [False, False, []]


def test_the_version_is_that_of_the_changelog_s_first_section():
    """`## 0.7 (unreleased)` stands in a tree that is 0.7.0.dev0, `## 0.7` in one that is 0.7.0."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    number, unreleased = re.search(r"^## (\S+)( \(unreleased\))?$", text, re.MULTILINE).groups()
    expected = f"{number}.0" if number.count(".") == 1 else number
    assert keras_transformer.__version__ == expected + (".dev0" if unreleased else "")
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert settings["metadata"]["version"] == "attr: keras_transformer.__version__"


def test_public_names_are_those_of_their_homes():
    for name in keras_transformer.__all__:
        public = getattr(keras_transformer, name)
        assert public.__name__ == name
        assert public.__module__.startswith("keras_transformer.")
    assert set(keras_transformer.__all__) <= set(dir(keras_transformer))
    with pytest.raises(AttributeError, match="has no attribute 'Transfomer'"):
        _ = keras_transformer.Transfomer


# Each command as `python -m` runs it, one after the other in one process.
ASK = """
import contextlib, io, runpy
answers = {}
for command in %r:
    for argument in ("--help", "--no_such_flag"):
        sys.argv = [command, argument]
        streams = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                runpy.run_module("keras_transformer." + command, run_name="__main__")
            except SystemExit as end:
                answers[command + argument] = [end.code, *(text.getvalue() for text in streams)]
sys.stderr.write(json.dumps(answers))
"""


def test_help_and_a_wrong_flag_are_answered_without_tensorflow():
    program = WATCH.format(program=ASK % ([*COMMANDS],), first="")
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout.splitlines()[-1]) == [False, False, []]
    answers = json.loads(process.stderr)
    assert len(answers) == 2 * len(COMMANDS)
    for command in COMMANDS:
        _, page, _ = answers[f"{command}--help"]
        assert ("--[no]traceback" in page) == (command not in ("train", "distill"))
        assert ("--beam_size=" in page) == (command in SEARCHING and command != "train")
        assert ("--batch_tokens=" in page) == (command == "train")
        status, out, errors = answers[f"{command}--no_such_flag"]
        assert (status, out) == (2, "")
        assert errors.startswith("error: command line: --no_such_flag does not exist")


# PyPI's dead `keras-transformer` has our import name: a clash is refused.
def test_the_dead_package_is_refused_by_name(monkeypatch, tmp_path):
    assert keras_transformer._refuse_the_dead_namesake() is None
    (tmp_path / "keras_transformer-0.40.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="pip uninstall keras-transformer"):
        keras_transformer._refuse_the_dead_namesake()


# TensorFlow and the readers of SavedModels are imported without Keras, which works afterwards, and
# leave no file in the temporary folder.
PROGRAM = """
import json, os, sys, tempfile
from keras_transformer import startup

startup.start_tensorflow()
without = sorted({"keras", "jax", "tensorflow_text"} & set(sys.modules))
from keras_transformer.inference import exported, predictor, translator
without += sorted({"keras", "jax"} & set(sys.modules))
import tensorflow as tf

lazily = tf.keras.layers.Dense(2)(tf.ones([1, 3])).shape.as_list()
import keras
import tensorflow_text

same = isinstance(tf.keras.layers.Dense(2), keras.layers.Layer)
pieces = tensorflow_text.WhitespaceTokenizer().tokenize(["a b"]).to_list()

@tf.function
def sign(x):
    if x > 0:
        return 1
    return -1

sign(tf.constant(3))
written = sorted(os.path.splitext(name)[1] for name in os.listdir(tempfile.gettempdir()))
print(json.dumps([without, lazily, same, [piece.decode() for piece in pieces[0]], written]))
"""


def test_tensorflow_imports_keras_only_when_it_is_used_and_leaves_no_file(tmp_path):
    """Python may write what it compiled."""
    path = tmp_path / "program.py"
    temporary = tmp_path / "temporary"
    path.write_text(PROGRAM)
    temporary.mkdir()
    env = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
    # At the end a control: a program, and a folder of what was compiled of it.
    assert json.loads(process.stdout) == [[], [1, 2], True, ["a", "b"], ["", ".py"]]
    assert list(temporary.iterdir()) == []


# A library that is interrupted by Ctrl-C while it is imported, and says that it goes on.
INTERRUPTED = "import signal; signal.raise_signal(signal.SIGINT); raise SystemExit('went on')"


@pytest.mark.parametrize(
    ("program", "ignored", "status", "message"),
    [
        (("-m", "keras_transformer.translate"), False, 130, "error: interrupted."),
        (("-m", "keras_transformer.prepare", "-m", "a"), False, 130, "error: interrupted."),
        # Controls: another program that imports the package, and a command in the background.
        (("-c", "import keras_transformer, absl"), False, -signal.SIGINT, "KeyboardInterrupt"),
        (("-m", "keras_transformer.translate"), True, 1, "went on"),
    ],
)
def test_an_interrupted_import_ends_in_one_line(program, ignored, status, message, tmp_path):
    (tmp_path / "absl.py").write_text(INTERRUPTED)
    # The tests themselves may run in the background.
    answer = f"signal.signal(signal.SIGINT, signal.{'SIG_IGN' if ignored else 'SIG_DFL'})"
    begin = f"import os, signal, sys; {answer}; os.execv(sys.executable, sys.argv[1:])"
    process = subprocess.run(
        [sys.executable, "-c", begin, sys.executable, *program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
    )
    lines = process.stderr.splitlines()
    assert (process.returncode, lines[-1]) == (status, message)
    assert (len(lines) == 1) == (message != "KeyboardInterrupt")


# A wheel holds each file of the packages, flag files and the page too.
PACKAGES = ("keras_transformer", "pipelines")
# Added to the files of the packages.
NEW = ("keras_transformer/flagfiles/table9/deeper/new.flags", "keras_transformer/server/page/a.svg")
UNNAMED = "keras_transformer/server/notes.txt"


def test_a_wheel_holds_all_files_of_the_packages(tmp_path):
    # In the folder of the source, a build would leave files.
    source = tmp_path / "source"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=lambda *_: ["__pycache__"])
    for name in ("setup.cfg", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in (*NEW, UNNAMED):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    expected = {
        path.relative_to(source).as_posix()
        for package in PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file()
    }
    options = ("--quiet", "--no-deps", "--no-build-isolation", f"--wheel-dir={tmp_path}")
    printed(sys.executable, "-m", "pip", "wheel", *options, str(source))
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    # The file that no pattern names is a control.
    assert expected - held == {UNNAMED}
    assert held >= set(NEW)


PACKAGE = pathlib.Path(keras_transformer.__file__).parent
CLASSES = {
    "layers": [
        *("Additive", "Conv1D", "ConvolutionBlock", "ConvolutionalDecoder", "ConvolutionalEncoder"),
        *("Decoder", "DecoderLayer", "Dense", "DotProduct", "Dropout", "Encoder", "EncoderLayer"),
        *("FeedForward", "FirstState", "GatedFeedForward", "LayerNormalization"),
        *("LearnedEncoding", "LinearBias", "LinearHeads", "LocalHeads", "LowRankHeads"),
        *("MeanState", "RecurrentEncoder"),
        *("MultiHeadAttention", "MultiStepAttention", "NoEncoding", "NoRelativePositions"),
        *("OrthogonalOfAnyDtype", "PatchEmbedding", "PieceBias", "PiecePrediction", "PostNorm"),
        *("PositionalEmbedding", "PreNorm", "PreRmsNorm", "ProposalHeads", "RecurrentDecoder"),
        *("RelativeBias", "RelativeKeysAndValues", "RmsNormalization", "Rotary"),
        *("HalvesEncoding", "ScaledDotProduct", "SegmentEmbedding", "SinusoidalEncoding"),
        *("SoftmaxHeads", "SparseHeads", "depth_scaled", "gelu", "gelu_tanh", "glorot"),
    ],
    "models": [
        *("BFloat16Weights", "BareTextEncoder", "ConvolutionalTranslator", "LanguageModel"),
        *("MaskedLanguageModel", "RecurrentTranslator", "TextClassifier", "TokenClassifier"),
        *("Transformer", "VisionTransformer"),
    ],
    "training": [
        *("Adafactor", "Adam", "LabelAccuracy", "LabelCount", "LabelCrossEntropy"),
        *("LabelSmoothedCrossEntropy", "Muon", "TransformerSchedule"),
    ],
}
# Classes that had another name when it was first saved.
RENAMED = {"NoRelativePositions": "RelativePositions"}


@pytest.fixture(scope="module", autouse=True)
def _all_modules():
    for room in CLASSES:
        for path in (PACKAGE / room).rglob("*.py"):
            importlib.import_module(
                ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            )


@pytest.mark.parametrize("room", CLASSES)
def test_keras_finds_each_class_by_its_saved_name(room):
    for name in CLASSES[room]:
        here = keras.saving.get_registered_object(f"keras_transformer>{name}")
        assert here, name
        assert here.__module__.startswith(f"keras_transformer.{room}.")
        assert getattr(importlib.import_module(here.__module__), RENAMED.get(name, name)) is here


def test_control_no_other_class_is_registered_as_ours():
    ours = {
        name for name in keras.saving.get_custom_objects() if name.startswith("keras_transformer>")
    }
    expected = {f"keras_transformer>{name}" for names in CLASSES.values() for name in names}
    assert ours == expected
