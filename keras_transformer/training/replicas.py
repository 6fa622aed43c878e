"""The replicas of a run: devices, hosts, and which batches each replica takes (Vaswani et al. 2017,
section 5.2: one machine with 8 GPUs).
"""

import contextlib
import json
import os

import keras
import tensorflow as tf

DISTRIBUTIONS = ("one", "mirrored", "multi_worker", "tpu")


def make_strategy(distribution: str, tpu: str = "") -> tf.distribute.Strategy:
    """Make the `tf.distribute.Strategy` of a run, before anything else asks TensorFlow for a
    device: of "one" device; "mirrored", all GPUs of this machine; "multi_worker", all GPUs of all
    machines that `TF_CONFIG` names; or a "tpu" by name or address, "" for this machine's own.
    """
    if distribution == "one":
        return tf.distribute.get_strategy()
    if distribution == "mirrored":
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if distribution == "multi_worker":
        _check_cluster(os.environ.get("TF_CONFIG", ""))
        return tf.distribute.MultiWorkerMirroredStrategy()
    if distribution == "tpu":
        return _tpu_strategy(tpu)
    raise ValueError(
        f"`distribution` must be one of {', '.join(DISTRIBUTIONS)}. Received: {distribution!r}."
    )


def gpu_capability() -> tuple[int, ...] | None:
    """Return CUDA's compute capability of the first GPU that Keras' backend trains on; (0, 0) if it
    reports none; None without a GPU.
    """
    if keras.backend.backend() == "jax":
        import jax

        device = jax.devices()[0]
        version = getattr(device, "compute_capability", "0.0")
        return tuple(map(int, version.split("."))) if device.platform == "gpu" else None
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return None
    return tf.config.experimental.get_device_details(gpus[0]).get("compute_capability", (0, 0))


def _check_cluster(text):
    expected = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
    try:
        cluster, task = (json.loads(text)[name] for name in ("cluster", "task"))
        hosts = cluster[task["type"]] if task["type"] in ("worker", "chief") else ()
        is_in_cluster = task["index"] in range(len(hosts))
    except (ValueError, KeyError, TypeError):
        is_in_cluster = False
    if not is_in_cluster:
        raise ValueError(
            f"--distribution=multi_worker needs the environment variable TF_CONFIG, {expected}. "
            f"Received: {text!r}."
        )


def _tpu_strategy(tpu):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"--distribution=tpu found no TPU at --tpu={tpu!r} ({reason}). Name its address, or "
            "choose another."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def has_hosts(strategy: tf.distribute.Strategy) -> bool:
    """Whether processes on several hosts train together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes files."""
    if not has_hosts(strategy):
        return True
    resolver = strategy.cluster_resolver
    return resolver.task_id == 0 and (
        resolver.task_type == "chief" or not resolver.cluster_spec().as_dict().get("chief")
    )


def wait_for_all(strategy: tf.distribute.Strategy, step: int = 0) -> None:
    """Wait until all hosts have called this; refuse to go on from different steps."""

    def mean():
        return strategy.reduce("MEAN", strategy.run(tf.constant, (step, tf.float64)), axis=None)

    if has_hosts(strategy) and tf.function(mean, autograph=False)() != step:
        raise ValueError(
            f"this host goes on from step {step}, and others do not: they see other checkpoints. "
            "Let --model_dir be on a disk that all hosts share, and start again."
        )


@contextlib.contextmanager
def telling_of_lost_hosts(strategy: tf.distribute.Strategy):
    """Turn the errors that follow the loss of another host into a `ConnectionError`."""
    try:
        yield
    except (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
    ) as error:
        if not has_hosts(strategy):
            raise
        reason = " ".join((str(error).partition("aborted by: ")[2] or str(error)).split())[:160]
        raise ConnectionError(
            f"another host is gone ({reason}). Start all again: the run resumes from its last "
            "checkpoint."
        ) from error


def distribute(
    strategy: tf.distribute.Strategy, batches, start: int
) -> tf.distribute.DistributedDataset:
    """Make the distributed dataset of `TrainingBatches`, or of an object with its method `dataset`,
    from part `start` on, a multiple of R. Each of the R replicas takes one of R parts in a row.
    """
    replicas = strategy.num_replicas_in_sync

    def of_this_host(context):
        here = replicas // context.num_input_pipelines
        own = batches.dataset(start, replicas, context.input_pipeline_id * here, here)
        # If the data might end, all hosts would ask each other before each batch.
        return own.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    return strategy.distribute_datasets_from_function(of_this_host)
