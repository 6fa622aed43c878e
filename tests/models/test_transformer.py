"""Figure 1 as one model: its size, its two ways to decode, saving, and learning with `model.fit`."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper

from keras_transformer.layers import PositionalEmbedding
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import TokenAccuracy, TokenCrossEntropy

SIZES = {"vocabulary_size": 11, "num_layers": 2, "d_model": 8, "d_ff": 16, "num_heads": 2}
BASE = Hyperparameters(37000)
BIG = Hyperparameters(37000, d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)
SOURCE = np.array([[4, 5, 6, 7, 8, 2], [9, 10, 2, 0, 0, 0]])
TARGET = np.array([[2, 7, 6, 5, 4], [2, 10, 9, 0, 0]])
# Keras 3.15 hands TensorFlow's variables to NumPy 2.4 as they are.
SAVES = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
)


@pytest.fixture
def model():
    """Every weight is shaken: a gain of 1 or a bias of 0 may hide a mistake."""
    rng = np.random.default_rng(0)
    model = Transformer(**SIZES, d_k=3, d_v=5)
    model.set_weights([rng.normal(w, 0.5) for w in model.get_weights()])
    return model


def parameters(hp):
    """The paper's matrices and vectors, added up: section 3's weights, biases in the FFN and gain
    and bias of each norm.
    """
    d_k = hp.d_k or hp.d_model // hp.num_heads
    d_v = hp.d_v or d_k
    attention = 2 * hp.d_model * hp.num_heads * (d_k + d_v)
    feed_forward = 2 * hp.d_model * hp.d_ff + hp.d_ff + hp.d_model
    norm = 2 * hp.d_model
    encoder_layer, decoder_layer = (
        attention + feed_forward + 2 * norm,
        2 * attention + feed_forward + 3 * norm,
    )
    return hp.vocabulary_size * hp.d_model + hp.num_layers * (encoder_layer + decoder_layer)


@pytest.mark.parametrize(
    "sizes",
    [{}, {"num_layers": 1}, {"d_model": 12}, {"d_ff": 7}, {"num_heads": 4}, {"d_k": 3, "d_v": 5}],
    ids=str,
)
def test_the_count_of_parameters_is_the_formula_s(sizes):
    hp = Hyperparameters(**{**SIZES, **sizes})
    assert Transformer(hp).count_params() == parameters(hp)


@pytest.mark.parametrize(("hp", "millions"), [(BASE, 63), (BIG, 214)], ids=["base", "big"])
def test_base_and_big_have_the_paper_s_size(hp, millions):
    assert parameters(hp) == pytest.approx(millions * 1e6, rel=0.01)


def test_one_table_serves_source_target_and_logits(model):
    assert [w.path for w in model.weights if "table" in w.path or "embedding" in w.path] == [
        "embedding/table"
    ]
    assert sum(isinstance(layer, PositionalEmbedding) for layer in model.layers) == 1


def test_logits_are_figure_1_in_float64(model):
    def parts(layer):
        names = (
            "self_attention",
            "self_attention_norm",
            "cross_attention",
            "cross_attention_norm",
            "feed_forward",
            "feed_forward_norm",
        )
        return {name: getattr(layer, name).get_weights() for name in names if hasattr(layer, name)}

    table, mask = model.embedding.get_weights()[0], (SOURCE != 0)[:, None]
    memory, x = paper.embedding(SOURCE, table), paper.embedding(TARGET, table)
    for layer in model.encoder.layers:
        memory = paper.encoder_layer(memory, parts(layer), 2, mask)
    for layer in model.decoder.layers:
        x = paper.decoder_layer(x, memory, parts(layer), 2, np.tril(np.ones((5, 5), bool)), mask)
    np.testing.assert_allclose(model((SOURCE, TARGET)), x @ table.T, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_logits_are_float32_and_so_are_the_weights(dtype):
    model = Transformer(**SIZES, dtype=dtype)
    assert model.encoder.compute_dtype == ("float32" if dtype == "float32" else "bfloat16")
    logits = model((SOURCE, TARGET))
    assert logits.shape == (2, 5, 11)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert {w.dtype for w in model.weights} == {"float32"}


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_encode_and_steps_equal_call(model, hypotheses):
    targets = np.random.default_rng(0).integers(1, 11, (2, hypotheses, 5))
    expected = model((np.repeat(SOURCE, hypotheses, axis=0), targets.reshape(-1, 5)))
    expected = np.reshape(expected, (2, hypotheses, 5, 11))
    encoded, past = model.encode(SOURCE), model.empty_past(2 * hypotheses)
    for t in range(5):
        logits, past = model.stepper().step(targets[:, :, t], t, past, encoded)
        np.testing.assert_allclose(logits, expected[:, :, t], rtol=0, atol=1e-5)
    assert (
        np.abs(
            model.stepper().step(targets[:, :, 4], 0, past, encoded)[0] - expected[:, :, 4]
        ).max()
        > 0.01
    )


def test_padding_width_batch_order_and_later_tokens_change_nothing(model):
    wide = (
        np.pad(SOURCE, [(0, 0), (0, 3)])[::-1],
        np.pad(TARGET, [(0, 0), (0, 2)], constant_values=9)[::-1],
    )
    logits = model((SOURCE, TARGET))
    np.testing.assert_allclose(model(wide)[::-1, :5], logits, rtol=0, atol=1e-5)
    filled = np.where(SOURCE == 0, 9, SOURCE)
    assert np.abs(model((filled, TARGET)) - logits)[1].max() > 0.01


def test_dropout_is_off_unless_training():
    model = Transformer(**SIZES, dropout=0.5)
    np.testing.assert_array_equal(model((SOURCE, TARGET)), model((SOURCE, TARGET), training=False))
    assert np.abs(model((SOURCE, TARGET)) - model((SOURCE, TARGET), training=True)).max() > 0.1


@SAVES
def test_a_saved_model_comes_back_with_equal_logits(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert (type(loaded), loaded.hyperparameters) == (Transformer, model.hyperparameters)
    np.testing.assert_array_equal(loaded((SOURCE, TARGET)), model((SOURCE, TARGET)))
    assert (
        np.abs(Transformer(**SIZES, d_k=3, d_v=5)((SOURCE, TARGET)) - model((SOURCE, TARGET))).max()
        > 0.1
    )


@SAVES
def test_the_dtype_policy_survives_saving(tmp_path):
    Transformer(**SIZES, dtype="mixed_bfloat16").save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").decoder.compute_dtype == "bfloat16"


def copying(sentences, length=4, seed=0):
    """Random sources, to be copied: what comes next cannot be told from the target alone."""
    source = np.random.default_rng(seed).integers(4, 11, (sentences, length))
    target = np.pad(source, [(0, 0), (1, 1)], constant_values=3)
    return (source, target[:, :-1]), target[:, 1:]


def test_fit_learns_to_copy():
    keras.utils.set_random_seed(0)
    model = Transformer(**{**SIZES, "num_layers": 1, "d_model": 32, "d_ff": 64}, dropout=0.0)
    model.compile(
        keras.optimizers.Adam(3e-3, beta_2=0.98),
        LabelSmoothedCrossEntropy(0.0),
        metrics=[TokenAccuracy(), TokenCrossEntropy()],
        jit_compile=False,
    )
    history = model.fit(*copying(512), batch_size=32, epochs=12, verbose=0).history
    assert history["loss"][-1] < 0.2 * history["loss"][0]
    unseen = model.evaluate(*copying(64, seed=1), verbose=0, return_dict=True)
    assert unseen["loss"] < 0.25 * math.log(11)
    assert unseen["accuracy"] > 0.95
    assert unseen["cross_entropy"] == pytest.approx(unseen["loss"], rel=1e-4)


def counting_traces(model):
    """Compiled for `fit`; the list grows whenever `train_step` is traced."""
    traces, train_step = [], model.train_step
    model.train_step = lambda data: traces.append(data) or train_step(data)
    model.compile("sgd", LabelSmoothedCrossEntropy(), metrics=[TokenAccuracy()], jit_compile=False)
    return traces


def test_fit_traces_at_most_once_a_bucket_shape():
    model = Transformer(**{**SIZES, "num_layers": 1})
    traces = counting_traces(model)
    for _ in range(2):
        for sentences, length in ((8, 2), (4, 4), (2, 8), (1, 16)):
            model.fit(*copying(2 * sentences, length), batch_size=sentences, verbose=0)
    assert 1 <= len(traces) <= 4
    before = len(traces)
    model.fit(*copying(2, 5), verbose=0)
    assert len(traces) <= before + 1


def test_fit_traces_a_dataset_of_bucketed_batches_once():
    ids = tf.TensorSpec([None, None], tf.int64)
    shapes = ((8, 2), (4, 4), (2, 8), (1, 16))
    batches = tf.data.Dataset.from_generator(
        lambda: (copying(*shape) for shape in shapes), output_signature=((ids, ids), ids)
    )
    model = Transformer(**{**SIZES, "num_layers": 1})
    traces = counting_traces(model)
    model.fit(batches.repeat(), steps_per_epoch=4, epochs=2, shuffle=False, verbose=0)
    assert len(traces) == 1
    model.make_train_function(force=True)
    model.fit(batches.repeat(), steps_per_epoch=4, shuffle=False, verbose=0)
    assert len(traces) == 2  # the count counts
