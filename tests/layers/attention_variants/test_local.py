"""Section 4: attention restricted to a neighbourhood, in blocks, is the masked full one."""

import numpy as np
import pytest
from oracles import attentions

from keras_transformer.layers import Masks, causal_mask
from keras_transformer.layers.attention_variants.linear_cost import LowRankHeads
from keras_transformer.layers.attention_variants.relative_positions import RelativeBias
from keras_transformer.layers.attention_variants.restricted import LocalHeads
from keras_transformer.layers.scaled_dot_product import SoftmaxHeads

D = 4


def built(heads):
    heads.build(*[(None, 2, None, D)] * 3)
    return heads


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("length", "radius"), [(1, 1), (1, 5), (5, 5), (6, 5), (10, 5), (11, 5), (17, 4), (9, 1)]
)
def test_blocks_give_what_the_masked_full_attention_gives(length, radius, causal, random):
    q, k, v = (random(2, 2, length, D) for _ in range(3))
    padding = np.arange(length) < np.array([[length], [max(1, length - 2)]])
    after = causal_mask(length) if causal else None
    masks = Masks(padding[:, None], after)
    local = built(LocalHeads(radius, positions=RelativeBias(not causal)))
    full = SoftmaxHeads(positions=local.positions)
    built(full).set_weights(local.get_weights())
    near = attentions.near(length, radius)[None]
    expected = full(q, k, v, masks=Masks(padding[:, None] & near, after))
    actual = local(q, k, v, masks=masks)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
    if radius < length - 2:
        assert np.abs(actual - full(q, k, v, masks=masks)).max() > 0.01


def test_a_mask_with_a_row_for_each_query_is_refused(random):
    x = random(1, 2, 6, D)
    for heads in (LocalHeads(2), LowRankHeads(2)):
        with pytest.raises(ValueError, match=r"of shape \(B, 1, S\).*shape \(1, 6, 6\)"):
            built(heads)(x, x, x, masks=Masks(np.ones((1, 6, 6), bool)))


def test_low_rank_attention_is_refused_in_a_decoder(random):
    x = random(1, 2, 6, D)
    with pytest.raises(ValueError, match="`causal` must be None"):
        built(LowRankHeads(2))(x, x, x, masks=Masks(causal=causal_mask(6)))
    with pytest.raises(NotImplementedError):
        built(LowRankHeads(2)).stepper()
