"""Training examples in columns, and how some of them become a batch for `model.fit`."""

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from pipelines.random_numbers import key
from pipelines.vocabularies.segmentation import Variation
from pipelines.vocabularies.token_ids import TokenIds, as_tensor, empty_array

# The column of random keys, among those that `to_batch` takes.
KEYS = "keys"


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """Examples in columns. Shapes: B examples in a batch, L the padded length of a column.

    Args:
        ragged: name -> `TokenIds`, one sequence per example, of at least one token. Each of these
            columns is one side of the bucketing.
        fixed: name -> array (examples, ...), one row per example.
        to_batch: takes name -> tensor, ragged columns as int32 (B, L) padded with 0, fixed ones as
            (B, ...). Returns Keras' triple (inputs, labels, weights), where weights, float32 of the
            labels' shape, say which labels count. It may use TensorFlow operations only, because it
            becomes part of a graph.
        positions: how many tokens of `batch_tokens` an example counts for if no column is ragged,
            such as the patches of an image.
        variations: name of a ragged column -> what changes its sequences each time they are seen,
            and pads them to the longest. Other columns stay, and are padded to their bucket.
        draws: seed of the random numbers of `to_batch`, at least 0. It then gets a column `KEYS`,
            uint64 (B,): new numbers each time an example is seen in training, and always the same
            in evaluation. None: there is no such column.
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
        """The names of the sides; ("input",) for examples without sequences."""
        return tuple(self.ragged) or ("input",)

    @property
    def lengths(self) -> np.ndarray:
        """The length of each side of each example, integers (examples, sides)."""
        if not self.ragged:
            return np.full((len(self), 1), self.positions)
        shape = (len(self), len(self.ragged))
        lengths = empty_array(math.prod(shape), np.int32, self.folder).reshape(shape)
        for side, column in zip(lengths.T, self.ragged.values(), strict=True):
            np.subtract(column.starts[1:], column.starts[:-1], out=side, casting="unsafe")
        return lengths

    @property
    def folder(self) -> pathlib.Path | None:
        """The folder that the sequences are mapped from; None: they are in memory."""
        starts = next((column.starts for column in self.ragged.values()), None)
        name = getattr(starts, "filename", None)
        return name and pathlib.Path(name).parent

    def keys(self, buckets: tf.Tensor, places: tf.Tensor) -> list[tf.Tensor]:
        """Return the random keys at places of the buckets' streams, [uint64 (B,)], or []."""
        varied = [variation.keys(buckets, places) for variation in self.variations.values()]
        own = [] if self.draws is None else [key(self.draws, buckets, places)]
        return [*varied, *own][:1]

    def batch(self, rows: tf.Tensor, lengths, keys: tf.Tensor | None = None) -> tuple:
        """Apply `to_batch` to the examples of some numbers, `rows`, int64 (B,), padded to the
        lengths L of the ragged columns, integers or int64 scalars. Without keys, uint64 (B,),
        sequences stay as they are, and `to_batch` draws by the numbers of the examples.
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
    """Return the sequences at `rows`, int64 (B,), of `TokenIds`, none longer than `length`, as a
    rectangle int32 (B, L), padded with 0.
    """
    begins = tf.gather(starts, rows)[:, None]
    places = begins + tf.range(length, dtype=tf.int64)
    inside = places < tf.gather(starts, rows + 1)[:, None]
    ids = tf.cast(tf.gather(flat, tf.where(inside, places, begins)), tf.int32)
    return tf.where(inside, ids, 0)
