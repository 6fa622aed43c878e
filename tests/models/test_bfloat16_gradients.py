"""Law: no gradient is lost in bfloat16, of which 8 bits count: what is summed over thousands of
positions is summed in float32.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import bfloat16_sums

from keras_transformer.models import Hyperparameters, model_of, sizes_of_description
from keras_transformer.models.text_encoders import MaskedLanguageModel, TokenClassifier

SIZES = {"vocabulary_size": 50, "num_layers": 1, "d_model": 32, "dropout": 0.0}
OF_A_TRANSFORMER = {**SIZES, "d_ff": 64, "num_heads": 2}
# As long as a batch of 4,096 tokens.
SHAPE = (256, 16)
LARGEST_ERROR = 0.04


def ids(seed, shape=SHAPE):
    return np.random.default_rng(seed).integers(4, 50, shape).astype("int32")


def translator(shape=SHAPE, **values):
    def build(policy):
        return model_of(sizes_of_description({**SIZES, **values}), policy), (
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
    # An LSTM adds its bias position by position, so that rows are what is summed over.
    "recurrent": translator(architecture="recurrent", shape=(2048, 2)),
    "convolutional": translator(architecture="convolutional"),
    "masked": masked,
    "tagger": tagger,
}


def gradients(build, policy):
    """By the path of the variable, of a loss that pulls every position the same way."""
    keras.utils.set_random_seed(3)
    model, inputs = build(policy)
    with tf.GradientTape() as tape:
        logits = tf.cast(model(inputs), tf.float32)
        loss = tf.reduce_sum(-tf.nn.log_softmax(logits)[..., :3])
    variables = model.trainable_variables
    found = tape.gradient(loss, variables)
    return {
        variable.path: tf.convert_to_tensor(gradient).numpy().astype("float64")
        for variable, gradient in zip(variables, found, strict=True)
    }


def errors(build):
    """How far each gradient in bfloat16 is from float32's, relatively."""
    exact = gradients(build, "float32")
    rounded = gradients(build, "mixed_bfloat16")
    assert exact.keys() == rounded.keys()
    norms = {name: np.linalg.norm(gradient) for name, gradient in exact.items()}
    # A bias of all keys changes no softmax: its gradient is 0, and relative to itself any error is.
    least = 0.001 * max(norms.values())
    return {
        name: np.linalg.norm(rounded[name] - exact[name]) / max(norms[name], least)
        for name in exact
    }


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_gives_every_variable_its_gradient(name):
    found = errors(MODELS[name])
    assert {one: error for one, error in found.items() if not error < LARGEST_ERROR} == {}


def test_control_a_sum_in_bfloat16_is_found(monkeypatch):
    bfloat16_sums.use(monkeypatch)
    assert max(errors(MODELS["post"]).values()) > 2 * LARGEST_ERROR
