"""Sequences of ids, packed into one NumPy array one after another (Vaswani et al. 2017, section
5.1); and slices of a text to pack, as many lines as one call of the tokenizer takes.
"""

import dataclasses
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from pipelines.whole_files import errors_naming

# TensorFlow wants memory to begin at a multiple of so many bytes.
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
        starts = empty_array(len(lengths) + 1, np.int64)
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
        """Join the sentences of all parts, at least one, in order."""
        parts = list(parts)
        flats = [part.flat for part in parts]
        flat = empty_array(sum(map(len, flats)), np.result_type(*flats))
        lengths = np.concatenate([part.lengths for part in parts])
        return cls.of_lengths(np.concatenate(flats, out=flat), lengths)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """Return the ids of one sentence."""
        return self.flat[self.starts[index] : self.starts[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sentence, int64 (sentences,)."""
        return np.diff(self.starts)

    def where(self, keep: np.ndarray) -> "TokenIds":
        """Return the sentences where `keep`, booleans (sentences,), is true."""
        lengths = self.lengths[keep]
        flat = empty_array(lengths.sum(), self.flat.dtype)
        np.compress(np.repeat(keep, self.lengths), self.flat, out=flat)
        return self.of_lengths(flat, lengths)


def smallest_dtype(vocabulary_size: int) -> np.dtype:
    """Return uint16 where it holds every id of the vocabulary, else int32."""
    return np.dtype(np.uint16 if vocabulary_size <= 2**16 else np.int32)


def empty_array(size: int, dtype, folder: pathlib.Path | None = None) -> np.ndarray:
    """Return an uninitialized array (size,) that TensorFlow can use without copying it: in memory,
    or mapped from a nameless file in a folder, which disappears with the array.
    """
    dtype = np.dtype(dtype)
    if folder and size:
        with tempfile.TemporaryFile(dir=folder) as file, errors_naming(folder):
            # Otherwise a full disk would kill the process when it writes to the array.
            os.posix_fallocate(file.fileno(), 0, int(size) * dtype.itemsize)
            return np.asarray(np.memmap(file, dtype, "w+", shape=size))
    memory = np.empty(size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size * dtype.itemsize].view(dtype)


def as_tensor(array: np.ndarray) -> tf.Tensor:
    """Return the array as a tensor in the host's memory, shared with it where TensorFlow can."""
    with tf.init_scope(), tf.device("CPU:0"):
        if array.ctypes.data % ALIGNMENT or not array.flags.writeable:
            return tf.constant(array)
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def slices(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the parts of a text in order, each as large as one call of a tokenizer takes."""
    for start in range(0, len(lines), LINES_A_CALL):
        yield lines[start : start + LINES_A_CALL]


def packed(parts: Iterable[tf.RaggedTensor], size: int) -> TokenIds:
    """Pack the rows of all parts, at least one, in order: integers below `size`."""
    dtype = smallest_dtype(size)
    return TokenIds.concatenate(
        TokenIds.of_lengths(part.values.numpy().astype(dtype), part.row_lengths().numpy())
        for part in parts
    )
