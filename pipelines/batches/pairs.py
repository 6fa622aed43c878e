"""Pairs of sentences as ids: what a translator learns from (Vaswani et al. 2017, section 5.1)."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from pipelines.batches.examples import Examples
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies.segmentation import Segmentation
from pipelines.vocabularies.token_ids import TokenIds


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedPairs:
    """Pairs as ids: sentence i of one side translates sentence i of the other.

    Attributes:
        sources, targets: each sentence closed by EOS.
        too_long: how many pairs were dropped for their length.
        kept: which of the pairs that there were before are left, booleans; None: all.
    """

    sources: TokenIds
    targets: TokenIds
    too_long: int = 0
    kept: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.sources)

    def up_to(self, max_length: int) -> "TokenizedPairs":
        """The pairs with neither side above `max_length` tokens. The others are counted in
        `too_long`.
        """
        keep = (self.sources.lengths <= max_length) & (self.targets.lengths <= max_length)
        if keep.all():
            return self
        return TokenizedPairs(
            self.sources.where(keep),
            self.targets.where(keep),
            self.too_long + int(np.count_nonzero(~keep)),
            keep,
        )

    def of_those_kept(self, numbers: np.ndarray | None) -> np.ndarray | None:
        """Of numbers for all pairs there were, those of the pairs that are left."""
        return numbers if numbers is None or self.kept is None else numbers[self.kept]

    def examples(self, segmentations: Mapping[str, Segmentation] | None = None) -> Examples:
        """The pairs as `Examples` of translation, with segmentations of "source" and "target" if
        they are given.

        A batch is `((source, target_input), target, weights)`: int32 (B, S), (B, T), (B, T) and
        float32 (B, T). The target input is the target shifted right after BOS. Weights are 1.0
        where the target is no padding.
        """
        sides = {"source": self.sources, "target": self.targets}
        return Examples(sides, {}, _translation, segmentations=segmentations or {})


def _translation(columns):
    target = columns["target"]
    target_input = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
    return (columns["source"], target_input), target, tf.cast(target != PAD, tf.float32)
