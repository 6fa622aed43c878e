"""TensorFlow is imported without what it does not need, works with it afterwards, and leaves no
file in the temporary folder.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, sys, tempfile
from keras_transformer import startup

startup.start_tensorflow()
without = sorted({"keras", "jax", "tensorflow_text"} & set(sys.modules))
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
print(json.dumps([without, lazily, same, [one.decode() for one in pieces[0]], written]))
"""


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def printed(tmp_path_factory, temporary):
    """What the program prints, where Python may keep what it compiled."""
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(PROGRAM)
    root = str(pathlib.Path(__file__).parents[1])
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": root}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_tensorflow_does_without_keras_and_has_it_when_asked(printed):
    assert printed[:4] == [[], [1, 2], True, ["a", "b"]]


def test_nothing_stays_in_the_temporary_folder(printed, temporary):
    assert printed[4] == ["", ".py"]  # control: a program, and a folder of what was compiled of it
    assert list(temporary.iterdir()) == []
