"""Train and serve your own translator: "Attention Is All You Need" (Vaswani et al. 2017) on TensorFlow and Keras 3."""

import contextlib
import importlib.metadata
import importlib.util
import os
import sys

__version__ = "0.5.0"


def _refuse_the_dead_namesake():
    """PyPI's `keras-transformer` (2022, another project) installs the same import name over ours."""
    try:
        version = importlib.metadata.version("keras-transformer")
    except importlib.metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"The package `keras-transformer` {version} is installed: another, retired project with the same import name, whose files mix "
        "with ours. Run `pip uninstall keras-transformer`, then `pip install --force-reinstall --no-deps keras-transformer-nmt`."
    )


@contextlib.contextmanager
def _standard_error_to_nowhere():
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _import_tensorflow_quietly():
    """TensorFlow's C++ tells at every start of missing GPUs and compiled-in instructions, in part before it reads its log level.

    What goes wrong is raised all the same. Another backend's GPU stays its own: TensorFlow would take all of its memory to tokenize.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Large tensors are kept for the next step: malloc gives them back, and the system clears their pages anew (measured: 3 to 11 % of a
    # training step). Its own limit is 64 GB, however much memory there is.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20))
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if "tensorflow" not in sys.modules and (backend == "tensorflow" or importlib.util.find_spec("tensorflow")):
        with _standard_error_to_nowhere():
            import tensorflow as tf

            tf.config.list_physical_devices()
            if backend != "tensorflow":
                tf.config.set_visible_devices([], "GPU")


_refuse_the_dead_namesake()
_import_tensorflow_quietly()
