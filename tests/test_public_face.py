"""What the package shows, and what importing it and asking a command for help leave alone."""

import configparser
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import keras_transformer

PACKAGE = pathlib.Path(keras_transformer.__file__).parent
COMMANDS = (
    *("align", "average", "diversify", "evaluate", "export", "generate", "import_model", "parse"),
    *("predict", "prepare", "score", "serve", "train", "translate", "tune", "visualize"),
)
SEARCHING = ("evaluate", "export", "generate", "parse", "train", "translate", "visualize")
# Tells what a program has changed in its process.
WATCH = """
import json, os, sys
{first}
def state():
    streams = [os.stat(number) for number in range(3)]
    return dict(os.environ), [(one.st_dev, one.st_ino) for one in streams]
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
    done = subprocess.run(
        [sys.executable, "-c", WATCH.format(program=program, first=first)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")
def test_importing_the_layers_changes_nothing_else():
    found = watched(IMPORTS, first="import keras", KERAS_BACKEND="jax")
    assert found == [False, False, ["keras"]]


def test_control_starting_tensorflow_is_seen():
    variables = ("TF_CPP_MIN_LOG_LEVEL", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")
    unset = "\n".join(f"before[0].pop({name!r}, None)" for name in variables)
    assert watched(f"{unset}\n{STARTS}") == [True, True, ["tensorflow"]]


def test_importing_the_package_imports_nothing_heavy():
    assert watched("import keras_transformer; dir(keras_transformer)") == [False, False, []]


def test_the_version_is_that_of_the_changelog_s_first_section():
    """`## 0.7 (unreleased)` stands in a tree that is 0.7.0.dev0, `## 0.7` in one that is 0.7.0."""
    root = PACKAGE.parent
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    number, unreleased = re.search(r"^## (\S+)( \(unreleased\))?$", text, re.MULTILINE).groups()
    expected = f"{number}.0" if number.count(".") == 1 else number
    assert keras_transformer.__version__ == expected + (".dev0" if unreleased else "")
    settings = configparser.ConfigParser()
    settings.read(root / "setup.cfg", encoding="utf-8")
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
told = {}
for command in %r:
    for argument in ("--help", "--no_such_flag"):
        sys.argv = [command, argument]
        streams = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                runpy.run_module("keras_transformer." + command, run_name="__main__")
            except SystemExit as end:
                told[command + argument] = [end.code, *(one.getvalue() for one in streams)]
sys.stderr.write(json.dumps(told))
"""


def test_help_and_a_wrong_flag_are_answered_without_tensorflow():
    program = WATCH.format(program=ASK % (COMMANDS,), first="")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [False, False, []]
    told = json.loads(done.stderr)
    assert len(told) == 2 * len(COMMANDS)
    for command in COMMANDS:
        _, shown, _ = told[f"{command}--help"]
        assert ("--[no]traceback" in shown) == (command != "train")
        assert ("--beam_size=" in shown) == (command in SEARCHING and command != "train")
        assert ("--batch_tokens=" in shown) == (command == "train")
        assert told[f"{command}--no_such_flag"] == [2, "", told[f"{command}--no_such_flag"][2]]
        assert told[f"{command}--no_such_flag"][2].startswith(
            "error: command line: --no_such_flag does not exist"
        )
