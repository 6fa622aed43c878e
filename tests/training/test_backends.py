"""The same model trains on JAX: layers, schedule, loss and `fit` give TensorFlow's loss curve."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from training import backend_program

pytest.importorskip("jax")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tmp_path_factory.mktemp("weights") / "weights.npz"


@pytest.fixture(scope="module")
def tensorflow(weights):
    """The loss of each step, here."""
    return np.array(backend_program.train(weights, 0.1))


@pytest.fixture(scope="module")
def jax(weights, tensorflow):
    """What a process on JAX prints, which begins with the weights that TensorFlow began with."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": os.pathsep.join(sys.path),
        # Half of the time would go into making quick what runs for a moment.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    process = subprocess.run(
        [sys.executable, backend_program.__file__, str(weights), "0.1"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_jax_gives_tensorflow_s_loss_curve(jax, tensorflow):
    assert len(tensorflow) == backend_program.STEPS
    np.testing.assert_allclose(jax["losses"], tensorflow, rtol=0, atol=1e-4)
    assert tensorflow[-1] < tensorflow[0] - 0.1


def test_jax_drops_what_tensorflow_drops_on_average(jax):
    share, mean, is_anew = jax["dropped"]
    assert share == pytest.approx(0.25, abs=0.01)
    assert mean == pytest.approx(1, abs=0.01)
    assert is_anew
