"""The same model trains on JAX: layers, schedule, loss and `fit` give TensorFlow's loss curve."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).with_name("backend_program.py")


def losses(backend, weights, label_smoothing):
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run(
        [sys.executable, str(PROGRAM), str(weights), str(label_smoothing)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return np.array(json.loads(process.stdout))


def test_jax_gives_tensorflow_s_loss_curve(tmp_path):
    pytest.importorskip("jax")
    weights = tmp_path / "weights.npz"
    tensorflow = losses("tensorflow", weights, 0.1)
    jax = losses("jax", weights, 0.1)
    np.testing.assert_allclose(jax, tensorflow, rtol=0, atol=1e-4)
    assert tensorflow[-1] < tensorflow[0] - 0.1
    assert np.abs(losses("tensorflow", weights, 0.2) - jax).max() > 1e-3  # another loss


DROPOUT = """
import json, keras, numpy as np
from keras_transformer.layers import Dropout
keras.utils.set_random_seed(1)
layer, ones = Dropout(0.25), np.ones((64, 128, 64), "float32")
dropped = np.array([np.asarray(layer(ones, training=True)) for _ in range(2)])
anew = bool((dropped[0] != dropped[1]).any())
print(json.dumps([float((dropped == 0).mean()), float(dropped.mean()), anew]))
"""


def test_jax_drops_what_tensorflow_drops_on_average():
    pytest.importorskip("jax")
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run(
        [sys.executable, "-c", DROPOUT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    share, mean, anew = json.loads(process.stdout)
    assert share == pytest.approx(0.25, abs=0.01)
    assert mean == pytest.approx(1, abs=0.01)
    assert anew
