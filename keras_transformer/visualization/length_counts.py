"""How long the sentences of a corpus are, and what their batches hold of padding (Vaswani et al.
2017, section 5.1).
"""

import dataclasses

import numpy as np

from pipelines.batches.bucketing import Buckets, bucket


@dataclasses.dataclass(frozen=True)
class LengthCounts:
    """Lengths in pieces, EOS counted, and the buckets that they fall into.

    Attributes:
        lengths: integers (pairs, 2), of source and target.
        buckets: the `Buckets` of them.
        tokens: tokens in each bucket, both sides together, integers (B,).
        positions: the same with padding.
    """

    lengths: np.ndarray
    buckets: Buckets
    tokens: np.ndarray
    positions: np.ndarray


def count(lengths, batch_tokens: int) -> LengthCounts:
    """Count by bucket.

    Args:
        lengths: integers (pairs, 2).
        batch_tokens: tokens of an update on either side.

    Raises:
        ValueError: as `bucketing.bucket`.
    """
    lengths = np.asarray(lengths)
    buckets = bucket(lengths, batch_tokens)
    pairs = np.bincount(buckets.bucket_of)
    tokens = np.bincount(buckets.bucket_of, lengths.sum(axis=1)).astype(np.int64)
    return LengthCounts(lengths, buckets, tokens, pairs * buckets.lengths.sum(axis=1))
