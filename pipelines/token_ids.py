"""Sentences as numbers, packed: all ids of one side behind each other in one NumPy array (Vaswani
et al. 2017, section 5.1).
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class TokenIds:
    """The ids of many sentences, two bytes each where the vocabulary allows: 36 million pairs of
    WMT14 take about 4 GB.

    Attributes:
        flat: ids of all sentences in a row, uint16 or int32 (tokens,).
        starts: where each sentence begins in `flat`, and the end of the last, int64 (sentences +
            1,).
    """

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def of_lengths(cls, flat, lengths):
        """Pack ids whose sentences have these lengths.

        Raises:
            ValueError: if the lengths do not add up to the ids.
        """
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if starts[-1] != len(flat):
            raise ValueError(
                f"`lengths` must add up to the {len(flat)} ids of `flat`. Received: a sum of "
                f"{starts[-1]}."
            )
        return cls(flat, starts)

    @classmethod
    def concatenate(cls, parts):
        """The sentences of all parts, in order; at least one part."""
        parts = list(parts)
        return cls.of_lengths(
            np.concatenate([part.flat for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def __len__(self):
        return len(self.starts) - 1

    def __getitem__(self, index):
        """The ids of one sentence."""
        return self.flat[self.starts[index] : self.starts[index + 1]]

    @property
    def lengths(self):
        """Tokens of each sentence, int64 (sentences,)."""
        return np.diff(self.starts)

    def where(self, keep):
        """The sentences for which `keep`, booleans (sentences,), holds."""
        lengths = self.lengths
        return self.of_lengths(self.flat[np.repeat(keep, lengths)], lengths[keep])

    def padded(self, rows, length):
        """Some sentences as a rectangle.

        Args:
            rows: numbers of sentences, none longer than `length`.
            length: columns.

        Returns:
            int32 (rows, length), filled up with 0, the padding.
        """
        places = np.arange(length)
        lengths = self.starts[rows + 1] - self.starts[rows]
        inside = places < lengths[:, None]
        out = np.zeros(inside.shape, np.int32)
        out[inside] = self.flat[(self.starts[rows][:, None] + places)[inside]]
        return out


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedPairs:
    """Pairs as ids: sentence i of one side translates sentence i of the other.

    Attributes:
        sources, targets: each sentence closed by EOS.
        too_long: how many pairs were dropped for their length.
    """

    sources: TokenIds
    targets: TokenIds
    too_long: int = 0

    def __len__(self):
        return len(self.sources)

    def up_to(self, max_length):
        """The pairs with neither side above `max_length` tokens; the others are counted in
        `too_long`.
        """
        keep = (self.sources.lengths <= max_length) & (self.targets.lengths <= max_length)
        if keep.all():
            return self
        return TokenizedPairs(
            self.sources.where(keep),
            self.targets.where(keep),
            self.too_long + int(np.count_nonzero(~keep)),
        )


def smallest_dtype(vocabulary_size):
    """uint16 where it holds every id of the vocabulary, else int32."""
    return np.dtype(np.uint16 if vocabulary_size <= 2**16 else np.int32)
