"""Settings that a command makes in its process before TensorFlow starts. Notebooks make none."""

import atexit
import contextlib
import ctypes
import importlib.util
import os
import pathlib
import sys

from keras_transformer.tensorflow_errors import silence

# Optional imports of TensorFlow, hidden from it to save 2 to 8 s (measured). Code that needs Keras
# imports it afterwards.
NOT_NEEDED = ("keras", "jax")
# From glibc's malloc.h.
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8


def start_tensorflow() -> None:
    """Import TensorFlow without its messages, and let it keep the memory of large tensors.

    On another Keras backend TensorFlow gets no GPU: only to tokenize, it would take all its memory.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Keep the memory of large tensors for the next step: malloc returns it, and the system clears
    # the pages anew (measured: 3 to 11 % of a training step). TensorFlow's own limit is 64 GB.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(memory // 2**20))
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if "tensorflow" in sys.modules or not importlib.util.find_spec("tensorflow"):
        return
    # TensorFlow's C++ reports missing GPUs and compiled-in instructions, in part before it reads
    # its log level. Its errors are exceptions, which this does not hide.
    with silence():
        with _hidden(*NOT_NEEDED):
            import tensorflow as tf

        tf.config.list_physical_devices()
        atexit.register(_remove_compiled_graphs)
        if backend != "tensorflow":
            tf.config.set_visible_devices([], "GPU")


def give_memory_back() -> None:
    """Let TensorFlow return the memory of large tensors to the system, such as after a server's
    large request. Training keeps it instead. Call this before the first tensor.
    """
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "0"
    os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")


def give_all_memory_back() -> None:
    """Like `give_memory_back`, and let glibc return blocks from 256 kB too. By default it keeps
    those up to 32 MB, in a heap for each thread. Slower; for a model as large as the memory.
    """
    give_memory_back()
    # C libraries other than glibc lack this function.
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**18)
        libc.mallopt(M_ARENA_MAX, 1)


def _remove_compiled_graphs():
    """Remove the bytecode of the programs that TensorFlow's AutoGraph wrote into the temporary
    folder. TensorFlow removes only the programs.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("__autograph_generated_file"):
            compiled = pathlib.Path(module.__cached__)
            compiled.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # Another process uses or removed the folder.
                compiled.parent.rmdir()


@contextlib.contextmanager
def _hidden(*packages):
    """Let imports of packages fail in a block, unless they were imported before."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def spread_over_cores() -> int:
    """Let each operation of TensorFlow, if it was imported, use one core. Call this before
    TensorFlow computes anything.

    Decoding consists of small operations: two batches at once, on a core each, are faster than one
    batch on two cores.

    Returns:
        The number of batches to decode at once.
    """
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    return cores()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
