"""What a command sets in its process before TensorFlow starts. Notebooks are left alone."""

import atexit
import contextlib
import ctypes
import importlib.util
import os
import pathlib
import sys

from keras_transformer.tensorflow_errors import silence

# TensorFlow imports these where they are installed, and does without them where they are not
# (measured: 2 to 8 s of its import). Who needs Keras imports it afterwards.
NOT_NEEDED = ("keras", "jax")
# Of glibc's malloc.h.
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8


def start_tensorflow() -> None:
    """Import TensorFlow without its messages, and let it keep the memory of large tensors.

    On another Keras backend TensorFlow is left without a GPU: it would take all of its memory to
    tokenize.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Large tensors are kept for the next step: malloc gives them back, and the system clears their
    # pages anew (measured: 3 to 11 % of a training step). TensorFlow's own limit is 64 GB.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(memory // 2**20))
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if "tensorflow" in sys.modules or not importlib.util.find_spec("tensorflow"):
        return
    # TensorFlow's C++ reports missing GPUs and compiled-in instructions, in part before it reads
    # its log level. Errors are raised all the same.
    with silence():
        with _hidden(*NOT_NEEDED):
            import tensorflow as tf

        tf.config.list_physical_devices()
        atexit.register(_remove_compiled_graphs)
        if backend != "tensorflow":
            tf.config.set_visible_devices([], "GPU")


def give_memory_back() -> None:
    """Let the memory of large tensors be given back, as after a server's large request, and not be
    kept, as training does. Call it before the first tensor.
    """
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "0"
    os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")


def give_all_memory_back() -> None:
    """As `give_memory_back`, and so for blocks from 256 kB, which glibc else keeps up to 32 MB, in
    as many heaps as threads. This is slower, and for one model that is as large as the memory.
    """
    give_memory_back()
    # Other libraries of C have no such function.
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**18)
        libc.mallopt(M_ARENA_MAX, 1)


def _remove_compiled_graphs():
    """Remove what Python compiled of the programs that TensorFlow wrote into the temporary folder
    to make graphs. TensorFlow removes the programs alone.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("__autograph_generated_file"):
            compiled = pathlib.Path(module.__cached__)
            compiled.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # Another process has files in it, or removed it.
                compiled.parent.rmdir()


@contextlib.contextmanager
def _hidden(*packages):
    """Let imports of packages fail as if these were not installed, if not imported before."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def spread_over_cores() -> int:
    """Let each operation of TensorFlow, if it was imported, use one core. Call it before TensorFlow
    has computed anything.

    Decoding is made of small operations: two batches at once on a core each are decoded faster than
    one batch on two cores.

    Returns:
        The number of batches to decode at once.
    """
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    return cores()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
