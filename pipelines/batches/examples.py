"""What is learned from: columns of examples, and how a batch becomes what `model.fit` takes."""

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from pipelines.random_numbers import key
from pipelines.vocabularies.segmentation import Variation
from pipelines.vocabularies.token_ids import TokenIds, as_tensor, room

# The column of what examples draw by, in what `to_batch` takes.
KEYS = "keys"


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """Examples in columns. Shapes: B examples in a batch, L the padded length of a column.

    Args:
        ragged: name -> `TokenIds`, one sequence an example, each with one token at least. Each of
            these columns is one side of the bucketing.
        fixed: name -> array (examples, ...), one row an example.
        to_batch: takes name -> tensor, ragged columns as int32 (B, L) padded with 0, fixed ones as
            (B, ...). Gives Keras' triple (inputs, labels, weights), where weights, float32 of the
            labels' shape, say which labels count. Made of TensorFlow's operations alone, for it
            becomes part of a graph.
        positions: what an example counts of `batch_tokens` if no column is ragged, such as the
            patches of an image.
        variations: by name of a ragged column, what gives its sequences anew each time they are
            seen, padded to their longest. Without, they are taken as they are, padded to their
            bucket.
        draws: the seed of what `to_batch` draws, at least 0. It then finds a column `KEYS` of
            random numbers, uint64 (B,): in training another one each time that an example is seen,
            in measuring always the same. None: nothing is drawn, and there is no such column.
    """

    ragged: Mapping[str, TokenIds]
    fixed: Mapping[str, np.ndarray]
    to_batch: Callable[[dict[str, tf.Tensor]], tuple]
    positions: int = 1
    variations: Mapping[str, Variation] = dataclasses.field(default_factory=dict)
    draws: int | None = None

    def __post_init__(self):
        sizes = {name: len(column) for name, column in {**self.ragged, **self.fixed}.items()}
        if len(set(sizes.values())) != 1:
            received = ", ".join(f"{name} {size}" for name, size in sizes.items()) or "no column"
            raise ValueError(
                f"Columns must have one entry for each example. Received: {received}. Pass columns "
                "of one length."
            )

    def __len__(self) -> int:
        return len(next(iter({**self.ragged, **self.fixed}.values())))

    @property
    def sides(self) -> tuple[str, ...]:
        """The names of the sides, of examples without sequences the one name "input"."""
        return tuple(self.ragged) or ("input",)

    @property
    def lengths(self) -> np.ndarray:
        """The length of each side of each example, integers (examples, sides)."""
        if not self.ragged:
            return np.full((len(self), 1), self.positions)
        shape = (len(self), len(self.ragged))
        found = room(math.prod(shape), np.int32, self.folder).reshape(shape)
        for side, column in zip(found.T, self.ragged.values(), strict=True):
            np.subtract(column.starts[1:], column.starts[:-1], out=side, casting="unsafe")
        return found

    @property
    def folder(self) -> pathlib.Path | None:
        """Where the sequences are mapped from; None: they are in memory."""
        starts = next((column.starts for column in self.ragged.values()), None)
        name = getattr(starts, "filename", None)
        return name and pathlib.Path(name).parent

    def keys(self, buckets: tf.Tensor, places: tf.Tensor) -> list[tf.Tensor]:
        """What is drawn by at places of the buckets' streams, one uint64 (B,), or none."""
        own = [] if self.draws is None else [key(self.draws, buckets, places)]
        return [*(one.keys(buckets, places) for one in self.variations.values()), *own][:1]

    def batch(self, rows: tf.Tensor, lengths, keys: tf.Tensor | None = None) -> tuple:
        """What `to_batch` gives of some rows, numbers of examples, int64 (B,), as operations of
        TensorFlow; with lengths L of each ragged column, integers or int64 scalars. Without keys,
        uint64 (B,), sequences are as they are, and `to_batch` draws by the numbers of the examples.
        """
        columns = {name: tf.gather(column, rows) for name, column in self._fixed.items()}
        for (name, (flat, starts)), length in zip(self._ragged.items(), lengths, strict=False):
            columns[name] = (
                padded(flat, starts, rows, length)
                if keys is None or name not in self.variations
                else self.variations[name](flat, starts, rows, keys)
            )
        if self.draws is not None:
            columns[KEYS] = key(self.draws, rows) if keys is None else keys
        return self.to_batch(columns)

    @functools.cached_property
    def _ragged(self):
        return {
            name: (as_tensor(column.flat), as_tensor(column.starts))
            for name, column in self.ragged.items()
        }

    @functools.cached_property
    def _fixed(self):
        return {name: as_tensor(column) for name, column in self.fixed.items()}


def padded(flat: tf.Tensor, starts: tf.Tensor, rows: tf.Tensor, length) -> tf.Tensor:
    """Some sequences of `TokenIds`, those of the rows int64 (B,), none longer than `length`, as a
    rectangle int32 (B, L), filled up with 0, the padding.
    """
    begins = tf.gather(starts, rows)[:, None]
    places = begins + tf.range(length, dtype=tf.int64)
    inside = places < tf.gather(starts, rows + 1)[:, None]
    ids = tf.cast(tf.gather(flat, tf.where(inside, places, begins)), tf.int32)
    return tf.where(inside, ids, 0)
