"""Sequences of ids, packed: all ids one after another in one NumPy array (Vaswani et al. 2017,
section 5.1); and lines to packed ids, many lines in a call of the tokenizer.
"""

import dataclasses
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from pipelines.whole_files import errors_naming

# Where TensorFlow wants memory to begin: at a multiple of so many bytes.
ALIGNMENT = 64
LINES_A_CALL = 8192


@dataclasses.dataclass(frozen=True, eq=False)
class TokenIds:
    """The ids of many sentences: all in a row, uint16 or int32 (tokens,), and where each sentence
    begins, and the end of the last, int64 (sentences + 1,). An id takes two bytes where the
    vocabulary allows: 36 million pairs of WMT14 take about 4 GB.
    """

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def of_lengths(cls, flat: np.ndarray, lengths) -> "TokenIds":
        """Pack ids whose sentences have these lengths."""
        starts = room(len(lengths) + 1, np.int64)
        starts[0] = 0
        np.cumsum(lengths, out=starts[1:])
        if starts[-1] != len(flat):
            raise ValueError(
                f"`lengths` must add up to the {len(flat)} ids of `flat`. Received: a sum of "
                f"{starts[-1]}."
            )
        return cls(flat, starts)

    @classmethod
    def concatenate(cls, parts: Iterable["TokenIds"]) -> "TokenIds":
        """The sentences of all parts, in order; at least one part."""
        parts = list(parts)
        flats = [part.flat for part in parts]
        flat = room(sum(map(len, flats)), np.result_type(*flats))
        lengths = np.concatenate([part.lengths for part in parts])
        return cls.of_lengths(np.concatenate(flats, out=flat), lengths)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """The ids of one sentence."""
        return self.flat[self.starts[index] : self.starts[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sentence, int64 (sentences,)."""
        return np.diff(self.starts)

    def where(self, keep: np.ndarray) -> "TokenIds":
        """The sentences for which `keep`, booleans (sentences,), holds."""
        lengths = self.lengths[keep]
        flat = room(lengths.sum(), self.flat.dtype)
        np.compress(np.repeat(keep, self.lengths), self.flat, out=flat)
        return self.of_lengths(flat, lengths)


def smallest_dtype(vocabulary_size: int) -> np.dtype:
    """uint16 where it holds every id of the vocabulary, else int32."""
    return np.dtype(np.uint16 if vocabulary_size <= 2**16 else np.int32)


def room(size: int, dtype, folder: pathlib.Path | None = None) -> np.ndarray:
    """An array (size,) of any content that TensorFlow can use without copying it: in memory, or
    mapped from a file of a folder, which has no name and goes with the array.
    """
    dtype = np.dtype(dtype)
    if folder and size:
        with tempfile.TemporaryFile(dir=folder) as file, errors_naming(folder):
            # Else a full disk would kill the process where it writes to the array.
            os.posix_fallocate(file.fileno(), 0, int(size) * dtype.itemsize)
            return np.asarray(np.memmap(file, dtype, "w+", shape=size))
    memory = np.empty(size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size * dtype.itemsize].view(dtype)


def as_tensor(array: np.ndarray) -> tf.Tensor:
    """The array as a tensor in the memory of the host, its memory shared where TensorFlow can."""
    with tf.init_scope(), tf.device("CPU:0"):
        if array.ctypes.data % ALIGNMENT or not array.flags.writeable:
            return tf.constant(array)
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def slices(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts of a text, in order, each as large as one call of a tokenizer takes it."""
    for start in range(0, len(lines), LINES_A_CALL):
        yield lines[start : start + LINES_A_CALL]


def packed(parts: Iterable[tf.RaggedTensor], size: int) -> TokenIds:
    """The rows of all parts, at least one, of integers below `size`, in order."""
    dtype = smallest_dtype(size)
    return TokenIds.concatenate(
        TokenIds.of_lengths(part.values.numpy().astype(dtype), part.row_lengths().numpy())
        for part in parts
    )
