"""A decoder-only model; its logits are compared with GPT-2's in tests/imports."""

import numpy as np

from keras_transformer.models import LanguageModel

SIZES = {"vocabulary_size": 11, "num_layers": 2, "d_model": 8, "d_ff": 16, "num_heads": 2}
IDS = np.array([[2, 5, 9, 4], [2, 7, 7, 10]])


def drawn(**variants):
    model = LanguageModel(**SIZES | variants)
    random = np.random.default_rng(1)
    model.set_weights([random.normal(w, 0.3) for w in model.get_weights()])
    return model


def test_the_table_is_the_projection_unless_told_otherwise():
    tied, untied = (drawn(tie_embeddings=ties) for ties in ("decoder", "none"))
    assert untied.count_params() - tied.count_params() == 11 * 8
    assert tied.projection is tied.embedding


def test_attention_weights_are_causal_shares():
    weights = np.array(drawn().attention_weights(IDS)["decoder"])
    assert weights.shape == (2, 2, 2, 4, 4)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    assert not np.triu(weights, 1).any()
