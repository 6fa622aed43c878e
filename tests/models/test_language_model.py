"""A decoder-only model; its logits are compared with GPT-2's in tests/imports."""

import keras
import numpy as np
import pytest

from keras_transformer.models import Hyperparameters, LanguageModel

SIZES = {"vocabulary_size": 11, "num_layers": 2, "d_model": 8, "d_ff": 16, "num_heads": 2}
IDS = np.array([[2, 5, 9, 4], [2, 7, 7, 10]])


def drawn(**variants):
    model = LanguageModel(**SIZES | variants)
    random = np.random.default_rng(1)
    model.set_weights([random.normal(w, 0.3) for w in model.get_weights()])
    return model


def test_position_t_depends_on_what_comes_up_to_it():
    model = drawn(norm="pre", activation="swiglu", positions="rotary")
    changed = IDS.copy()
    changed[:, 2] = 3
    before, after = np.array(model(IDS)), np.array(model(changed))
    assert before.shape == (2, 4, 11)
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    assert (before[:, 2:] != after[:, 2:]).any(axis=-1).all()


@pytest.mark.parametrize(
    "variants",
    [
        {},
        {"norm": "pre", "positions": "learned", "attention_bias": True},
        {"norm": "pre_rms", "positions": "rotary", "activation": "swiglu"},
        {"positions": "relative", "tie_embeddings": "none"},
        {"attention": "linear", "positions": "learned"},
        {"attention": "local:2"},
    ],
    ids=str,
)
def test_one_token_at_a_time_gives_the_logits_of_the_whole(variants):
    model = drawn(**variants)
    stepper = model.stepper()
    # Two hypotheses a text, the second from the other text.
    rows = np.stack([IDS, IDS[::-1]], axis=1)
    state = stepper.start(4)
    for position in range(4):
        logits, state, attention = stepper(rows[:, :, position], np.int32(position), state)
        assert attention is None
        expected = np.array(model(IDS))[:, position]
        actual = np.array(logits)
        np.testing.assert_allclose(actual[:, 0], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(actual[:, 1], expected[::-1], rtol=1e-5, atol=1e-5)


def test_the_table_is_the_projection_unless_told_otherwise():
    tied, untied = (drawn(tie_embeddings=ties) for ties in ("decoder", "none"))
    assert untied.count_params() - tied.count_params() == 11 * 8
    assert tied.projection is tied.embedding


def test_attention_weights_are_causal_shares():
    weights = np.array(drawn().attention_weights(IDS)["decoder"])
    assert weights.shape == (2, 2, 2, 4, 4)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    assert not np.triu(weights, 1).any()


def test_config_round_trip():
    model = drawn(norm="pre", scaled_embeddings=False)
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    assert (
        clone.hyperparameters
        == model.hyperparameters
        == Hyperparameters(**SIZES, norm="pre", scaled_embeddings=False)
    )
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(IDS), model(IDS))
