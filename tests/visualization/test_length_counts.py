"""Tokens and positions of a corpus by bucket."""

import numpy as np
import pytest

from keras_transformer.visualization.length_counts import count


def test_buckets_hold_all_tokens_and_the_padding_that_they_say():
    random = np.random.default_rng(1)
    lengths = random.integers(2, 30, (500, 2))
    found = count(lengths, 100)
    for bucket, shape in enumerate(found.buckets.lengths):
        pairs = [
            pair for pair, of in zip(lengths, found.buckets.bucket_of, strict=True) if of == bucket
        ]
        assert found.tokens[bucket] == sum(source + target for source, target in pairs)
        assert found.positions[bucket] == len(pairs) * (shape[0] + shape[1])
    assert found.tokens.sum() == lengths.sum()
    padding = 1 - found.tokens.sum() / found.positions.sum()
    assert padding == pytest.approx(found.buckets.padding)
