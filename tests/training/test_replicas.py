"""Devices, hosts, and that replicas make the step of one batch of all their rows; and that JAX
trains as TensorFlow does.
"""

import json
import os
import pathlib
import subprocess
import sys
import urllib.error

import numpy as np
import pytest
import tensorflow as tf
from shell import printed, tf_configs
from training import backend_program

from keras_transformer.training import replicas

PROGRAM = pathlib.Path(__file__).with_name("replicas_program.py")
LONGEST_SECONDS = 600
# By distribution, the batches that each replica adds up.
EXPERIMENTS = {"one": "13", "mirrored": "12", "multi_worker": "1"}


TASK = (
    '{"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "%s", "index": %s}}'
)
NO_HOSTS = r"^--distribution=multi_worker needs the environment variable TF_CONFIG, \{.cluster.*\}"
NO_TASK_IN_IT = [
    TASK % place
    for place in (("worker", 2), ("worker", -1), ("worker", "null"), ("chief", 0), ("ps", 0))
]


@pytest.mark.parametrize(
    "config", [None, "", "worker", "[]", "{}", '{"cluster": {}}', *NO_TASK_IN_IT]
)
def test_several_hosts_need_a_cluster_that_this_one_is_in(monkeypatch, config):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if config is not None:
        monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(ValueError, match=NO_HOSTS):
        replicas.make_strategy("multi_worker")


@pytest.mark.parametrize("place", [("worker", 0), ("worker", 1)])
def test_control_a_host_of_the_cluster_gets_its_strategy(monkeypatch, place):
    strategy = object()
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", lambda: strategy)
    monkeypatch.setenv("TF_CONFIG", TASK % place)
    assert replicas.make_strategy("multi_worker") is strategy


NO_TPU = r"^--distribution=tpu found no TPU at --tpu='{}' \(.*\)\. Name its address, or choose"
TPU_ERRORS = [
    ValueError("none"),
    urllib.error.URLError("unknown host"),
    tf.errors.NotFoundError(None, None, "none\nat all"),
]


@pytest.mark.parametrize("error", TPU_ERRORS)
def test_a_missing_tpu_is_reported_in_one_line(monkeypatch, error):
    def resolver(tpu):
        raise error

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", resolver)
    with pytest.raises(ValueError, match=NO_TPU.format("mine")):
        replicas.make_strategy("tpu", "mine")


NOT_ONE = r"^`distribution` must be one of one, mirrored, multi_worker, tpu\. Received: 'many'\.$"


@pytest.mark.parametrize(("name", "message"), [("tpu", NO_TPU.format("")), ("many", NOT_ONE)])
def test_a_distribution_that_is_not_here_is_refused_by_name(monkeypatch, name, message):
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(ValueError, match=message):
        replicas.make_strategy(name)


@pytest.mark.parametrize(
    ("gpus", "details", "capability"),
    [
        ([], {}, None),
        (["GPU:0"], {"compute_capability": (8, 6)}, (8, 6)),
        (["GPU:0", "GPU:1"], {"device_name": "one that tells nothing"}, (0, 0)),
    ],
)
def test_the_compute_capability_of_a_gpu_may_be_unknown(gpus, details, capability, monkeypatch):
    monkeypatch.setattr(tf.config, "get_visible_devices", {"GPU": gpus}.__getitem__)
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
    assert replicas.gpu_capability() == capability


def test_one_process_is_its_own_chief_and_waits_for_none():
    alone = replicas.make_strategy("one")
    assert replicas.is_chief(alone)
    replicas.wait_for_all(alone)
    with pytest.raises(tf.errors.UnavailableError), replicas.telling_of_lost_hosts(alone):
        raise tf.errors.UnavailableError(None, None, "a file server, say")


@pytest.mark.parametrize("has_hosts", [False, True])
def test_hosts_wait_in_a_mean_over_all_of_their_replicas(monkeypatch, has_hosts):
    monkeypatch.setattr(replicas, "has_hosts", lambda strategy: has_hosts)
    strategy = replicas.make_strategy("one")
    means = []
    reduce = strategy.reduce
    monkeypatch.setattr(
        strategy,
        "reduce",
        lambda *args, **options: means.append(args[0]) or reduce(*args, **options),
    )
    replicas.wait_for_all(strategy, 7)
    assert means == ["MEAN"] * has_hosts


OTHER_STEP = (
    r"^this host goes on from step 7, and others do not: .* --model_dir be on a disk that all"
)


def test_hosts_that_would_go_on_from_other_steps_are_refused(monkeypatch):
    monkeypatch.setattr(replicas, "has_hosts", lambda strategy: True)
    strategy = replicas.make_strategy("one")
    monkeypatch.setattr(strategy, "reduce", lambda *args, axis: tf.constant(5.0, tf.float64))
    with pytest.raises(ValueError, match=OTHER_STEP):
        replicas.wait_for_all(strategy, 7)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The results of each experiment; all run at once."""
    folder = tmp_path_factory.mktemp("replicas")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    clusters = {"multi_worker": [{"TF_CONFIG": config} for config in tf_configs(2)]}
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), distribution, *experiments],
            env=environment | addition,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for distribution, experiments in EXPERIMENTS.items()
        for addition in clusters.get(distribution, [{}])
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=LONGEST_SECONDS)
            assert process.returncode == 0, output
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return {path.stem: dict(np.load(path)) for path in folder.iterdir()}


def largest_difference(here, there, kind):
    """The largest difference of the arrays whose names begin with `kind`."""
    assert here.keys() == there.keys()
    return max(float(np.abs(here[key] - there[key]).max()) for key in here if key.startswith(kind))


# An update over several batches is the update of one batch of all their rows.
SPREAD = [
    ("one-1-0", "one-3-0"),
    ("one-1-0", "mirrored-1-0"),
    ("one-1-0", "mirrored-2-0"),
    ("one-1-0", "multi_worker-1-0"),
    ("one-1-0", "multi_worker-1-1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "spread"), SPREAD)
@pytest.mark.parametrize("kind", ["weight", "average", "reports"])
def test_replicas_make_the_steps_of_one_that_sees_all_their_batches(trained, whole, spread, kind):
    assert largest_difference(trained[whole], trained[spread], kind) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["weight", "average", "reports"])
def test_hosts_have_the_same_results_to_the_last_bit(trained, kind):
    assert largest_difference(trained["multi_worker-1-0"], trained["multi_worker-1-1"], kind) == 0


@pytest.mark.slow
def test_each_replica_drops_other_entries_and_the_first_those_of_one_alone(trained):
    [alone] = trained["one-1-0"]["dropped"]
    hosts = [*trained["multi_worker-1-0"]["dropped"], *trained["multi_worker-1-1"]["dropped"]]
    for first, second in (hosts, trained["mirrored-1-0"]["dropped"]):
        np.testing.assert_array_equal(first, alone)
        assert np.mean(first == second) == pytest.approx(0.5, abs=0.1)


# The same model trains on JAX: layers, schedule, loss and `fit` give TensorFlow's loss curve.
@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    pytest.importorskip("jax")
    return tmp_path_factory.mktemp("weights") / "weights.npz"


@pytest.fixture(scope="module")
def tensorflow(weights):
    """The loss of each step in this process."""
    return np.array(backend_program.train(weights, 0.1))


@pytest.fixture(scope="module")
def jax(weights, tensorflow):
    """The output of a process on JAX that starts from the weights of the TensorFlow run."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": os.pathsep.join(sys.path),
        # Optimizing so short a program would take half of the time.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    command = (sys.executable, backend_program.__file__, str(weights), "0.1")
    return json.loads(printed(*command, env=environment))


@pytest.mark.slow
def test_jax_gives_tensorflow_s_loss_curve(jax, tensorflow):
    assert len(tensorflow) == backend_program.STEPS
    np.testing.assert_allclose(jax["losses"], tensorflow, rtol=0, atol=1e-4)
    assert tensorflow[-1] < tensorflow[0] - 0.1


@pytest.mark.slow
def test_jax_drops_the_share_that_tensorflow_drops(jax):
    share, mean, is_anew = jax["dropped"]
    assert share == pytest.approx(0.25, abs=0.01)
    assert mean == pytest.approx(1, abs=0.01)
    assert is_anew
