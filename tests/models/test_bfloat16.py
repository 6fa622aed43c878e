"""Weights in bfloat16: what stays float32, and how near logits and gradients are to float32's."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import bfloat16_sums

from keras_transformer.models import (
    Ensemble,
    Hyperparameters,
    Transformer,
    model_of,
    sizes_of_description,
    translation_policy,
)
from keras_transformer.models.text_encoders import MaskedLanguageModel, TokenClassifier

SIZES = {"vocabulary_size": 50, "num_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 2}
SOURCE = np.array([[4, 5, 6, 7, 8, 3], [9, 10, 3, 0, 0, 0]])


def bits(values):
    return np.asarray(values, np.float32).view(np.uint32)


@pytest.fixture(scope="module")
def models():
    """The same weights in float32 and in bfloat16."""
    rng = np.random.default_rng(0)
    full, half = (
        Transformer(**SIZES, dtype=translation_policy(precision))
        for precision in ("float32", "bfloat16")
    )
    weights = [rng.normal(np.all(w == 1), 0.2, w.shape) for w in full.get_weights()]
    for model in (full, half):
        model.set_weights(weights)
    return full, half


def decoded(model):
    """Logits of three steps of two hypotheses a sentence."""
    stepper = model.stepper()
    encoded = model.encode(SOURCE)
    state = stepper.start(4)
    logits = []
    for position, ids in enumerate(([[2, 2], [2, 2]], [[5, 6], [7, 8]], [[9, 10], [11, 12]])):
        step, state, _ = stepper(np.array(ids), position, state, encoded)
        logits.append(np.array(step))
    return np.stack(logits), state


def test_matrices_take_two_bytes_a_number_and_norms_keep_four(models):
    full, half = models
    assert {weight.dtype for weight in full.weights} == {"float32"}
    assert {weight.dtype for weight in half.weights if "norm" in weight.path} == {"float32"}
    assert {weight.dtype for weight in half.weights if "norm" not in weight.path} == {"bfloat16"}


def test_the_decoder_multiplies_in_bfloat16_and_keeps_its_state_in_float32(models):
    logits, state = decoded(models[1])
    assert logits.dtype == np.float32
    assert {tensor.dtype.name for tensor in keras.tree.flatten(state)} == {"float32"}
    # A product of bfloat16 numbers has 16 bits of a float32's 32.
    assert not (bits(logits) & 0xFFFF).any()
    assert (bits(decoded(models[0])[0]) & 0xFFFF).any()  # control


def test_logits_are_near_those_of_float32_and_equal_those_of_the_rounded_weights(models):
    full, half = models
    (exact, _), (rounded, _) = decoded(full), decoded(half)
    spread = exact.std()
    assert 0 < np.abs(rounded - exact).max() < 0.1 * spread
    same_weights = Transformer(**SIZES, dtype="float32")
    same_weights.set_weights([np.asarray(weight, np.float32) for weight in half.get_weights()])
    targets = np.array([[2, 5, 9], [2, 7, 11]])
    logits = half((SOURCE, targets))
    np.testing.assert_allclose(logits, same_weights((SOURCE, targets)), rtol=0, atol=1e-4 * spread)


def test_an_ensemble_may_mix_precisions(models):
    [(mixed, _), (full, _), (half, _)] = [
        decoded(model) for model in (Ensemble(models), Ensemble(models[:1]), Ensemble(models[1:]))
    ]
    assert np.all(mixed >= np.minimum(full, half) - 1e-4)
    assert np.all(mixed <= np.maximum(full, half) + 1e-4)


def test_a_model_in_bfloat16_weights_is_described_as_one(models):
    assert translation_policy("bfloat16").name == "bfloat16_weights"
    clone = Transformer.from_config(models[1].get_config())
    assert {weight.dtype for weight in clone.weights} == {"float32", "bfloat16"}
    assert clone.encoder.compute_dtype == "float32"


def test_another_precision_is_refused():
    message = r"`precision` must be float32 or bfloat16\. .*'float16'. Others are for"
    with pytest.raises(ValueError, match=message):
        translation_policy("float16")


# Law: no gradient is lost in bfloat16, which has 8 significant bits: sums over thousands of
# positions are computed in float32.
GRADIENT_SIZES = {"vocabulary_size": 50, "num_layers": 1, "d_model": 32, "dropout": 0.0}
OF_A_TRANSFORMER = {**GRADIENT_SIZES, "d_ff": 64, "num_heads": 2}
# The size of a batch of 4,096 tokens.
SHAPE = (256, 16)
LARGEST_ERROR = 0.04


def ids(seed, shape=SHAPE):
    return np.random.default_rng(seed).integers(4, 50, shape).astype("int32")


def translator(shape=SHAPE, **values):
    def build(policy):
        return model_of(sizes_of_description({**GRADIENT_SIZES, **values}), policy), (
            ids(0, shape),
            ids(1, shape),
        )

    return build


def masked(policy):
    model = MaskedLanguageModel(Hyperparameters(**OF_A_TRANSFORMER), dtype=policy)
    return model, (ids(0), np.zeros(SHAPE, "int32"), np.tile(np.arange(8, dtype="int32"), (256, 1)))


def tagger(policy):
    model = TokenClassifier(Hyperparameters(**OF_A_TRANSFORMER), labels=5, dtype=policy)
    return model, (ids(0), np.zeros(SHAPE, "int32"))


MODELS = {
    "post": translator(d_ff=64, num_heads=2),
    "pre, gated": translator(d_ff=64, num_heads=2, norm="pre", activation="swiglu"),
    "rms, rotary": translator(d_ff=64, num_heads=2, norm="pre_rms", positions="rotary"),
    "biases": translator(d_ff=64, num_heads=2, attention_bias=True, positions="shaw"),
    # An LSTM adds its bias at each position, so that the gradient is a sum over rows.
    "recurrent": translator(architecture="recurrent", shape=(2048, 2)),
    "convolutional": translator(architecture="convolutional"),
    "masked": masked,
    "tagger": tagger,
}


def gradients(build, policy):
    """Gradients, by the variable's path, of a loss that pulls every position the same way."""
    keras.utils.set_random_seed(3)
    model, inputs = build(policy)
    with tf.GradientTape() as tape:
        logits = tf.cast(model(inputs), tf.float32)
        loss = tf.reduce_sum(-tf.nn.log_softmax(logits)[..., :3])
    variables = model.trainable_variables
    values = tape.gradient(loss, variables)
    return {
        variable.path: tf.convert_to_tensor(gradient).numpy().astype("float64")
        for variable, gradient in zip(variables, values, strict=True)
    }


def errors(build):
    """The relative error of each gradient in bfloat16."""
    exact = gradients(build, "float32")
    rounded = gradients(build, "mixed_bfloat16")
    assert exact.keys() == rounded.keys()
    norms = {name: np.linalg.norm(gradient) for name, gradient in exact.items()}
    # A bias of all keys changes no softmax: its gradient is 0, which has no relative error.
    least = 0.001 * max(norms.values())
    return {
        name: np.linalg.norm(rounded[name] - exact[name]) / max(norms[name], least)
        for name in exact
    }


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_gives_every_variable_its_gradient(name):
    by_path = errors(MODELS[name])
    assert {path: error for path, error in by_path.items() if not error < LARGEST_ERROR} == {}


def test_control_a_sum_in_bfloat16_is_detected(monkeypatch):
    bfloat16_sums.use(monkeypatch)
    assert max(errors(MODELS["post"]).values()) > 2 * LARGEST_ERROR
