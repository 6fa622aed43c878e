"""TensorFlow is imported without what it does not need, and works with it afterwards."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from keras_transformer import startup

startup.start_tensorflow()
without = sorted({"keras", "jax", "tensorflow_text"} & set(sys.modules))
import tensorflow as tf

lazily = tf.keras.layers.Dense(2)(tf.ones([1, 3])).shape.as_list()
import keras
import tensorflow_text

same = isinstance(tf.keras.layers.Dense(2), keras.layers.Layer)
pieces = tensorflow_text.WhitespaceTokenizer().tokenize(["a b"]).to_list()
print(json.dumps([without, lazily, same, [one.decode() for one in pieces[0]]]))
"""


def test_tensorflow_does_without_keras_and_has_it_when_asked():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[], [1, 2], True, ["a", "b"]]
    assert done.stderr == ""
