"""The laws of every registered model: a row a model or variant, and a registered model without a
row fails. What a model computes is compared with an oracle in tests/models and tests/imports.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable

import keras
import numpy as np
import pytest

from keras_transformer import models
from keras_transformer.layers import embedding
from keras_transformer.models import text_encoders

V, B, S, T = 23, 6, 6, 5
RANDOM = np.random.default_rng(0)
S_LENGTHS = np.array([6, 2, 4, 3, 5, 6])
T_LENGTHS = np.array([5, 2, 4, 5, 3, 1])
SIZES = {"vocabulary_size": V, "num_layers": 2, "d_model": 8, "d_ff": 12, "num_heads": 2}
PICTURE = {"height": 4, "width": 6, "channels": 3, "classes": 5, "patch_size": 2}
STACK = {name: size for name, size in SIZES.items() if name != "vocabulary_size"}
BASELINE = {"vocabulary_size": V, "num_layers": 2, "d_model": 8}


def ids(lengths, width):
    return np.where(np.arange(width) < lengths[:, None], RANDOM.integers(4, V, (B, width)), 0)


SOURCE, TARGET = ids(S_LENGTHS, S), ids(T_LENGTHS, T)
SEGMENTS = RANDOM.integers(0, 2, (B, S)) * (SOURCE != 0)
PLACES = np.tile(np.arange(S), (B, 1))


@dataclasses.dataclass
class Row:
    """The constructor of a model, its inputs, the lengths of the sentences without padding, by how
    much each input may be padded further, and whether the model has a stepper.
    """

    make: Callable
    inputs: tuple
    lengths: np.ndarray | None = None
    widening: tuple[int, ...] = ()
    steps: bool = False

    def call(self, model, inputs=None, **named):
        inputs = inputs or self.inputs
        return np.array(model(inputs if len(inputs) > 1 else inputs[0], **named))


def translator(kind=models.Transformer, **sizes):
    make = functools.partial(kind, **(SIZES if kind is models.Transformer else BASELINE) | sizes)
    return Row(make, (SOURCE, TARGET), T_LENGTHS, (3, 2), steps=True)


def language_model(**sizes):
    make = functools.partial(models.LanguageModel, **SIZES | sizes)
    return Row(make, (TARGET,), T_LENGTHS, (2,), steps=True)


def text_encoder(kind, *more, places=False, time=True):
    hyperparameters = models.Hyperparameters(**SIZES, dropout=0.5)
    inputs = (SOURCE, SEGMENTS, PLACES) if places else (SOURCE, SEGMENTS)
    make = functools.partial(kind, hyperparameters, *more)
    return Row(make, inputs, S_LENGTHS if time else None, (3, 3, 0)[: len(inputs)])


# Each choice is in a row.
TRANSLATING = [
    {"d_k": 3, "d_v": 5, "dropout": 0.5},
    {"norm": "pre", "activation": "gelu", "d_k": 3, "d_v": 5, "dropout": 0.5},
    {"attention": "dot_product", "positions": "relative"},
    {"attention": "additive", "positions": "learned", "max_positions": 3},
    {"attention": "local:1", "positions": "rotary", "block_size": 3},
    {"attention": "sparse:2", "positions": "shaw", "norm": "pre"},
    {"attention": "low_rank:3", "max_positions": 4, "positions": "none", "activation": "swiglu"},
    {"attention": "linear", "tie_embeddings": "decoder", "activation": "swish"},
    {"positions": "alibi", "tie_embeddings": "none", "attention_dropout": 0.1},
]
CONTINUING = [
    {"dropout": 0.5},
    {"norm": "pre", "positions": "learned", "attention_bias": True, "attention": "linear"},
    {"norm": "pre_rms", "positions": "rotary", "activation": "swiglu", "attention": "local:2"},
    {"positions": "relative", "tie_embeddings": "none", "scaled_embeddings": False},
]


def called(kind, sizes):
    return f"{kind} {' '.join(str(value) for value in sizes.values())}"


# By the registered names; behind one, the variant.
ROWS = {
    **{called("Transformer", sizes): translator(**sizes) for sizes in TRANSLATING},
    **{called("LanguageModel", sizes): language_model(**sizes) for sizes in CONTINUING},
    "RecurrentTranslator": translator(models.RecurrentTranslator, dropout=0.5),
    "ConvolutionalTranslator": translator(
        models.ConvolutionalTranslator, positions="learned", max_positions=6, dropout=0.5
    ),
    "BareTextEncoder": text_encoder(text_encoders.BareTextEncoder),
    "MaskedLanguageModel": text_encoder(text_encoders.MaskedLanguageModel, places=True),
    "TextClassifier": text_encoder(text_encoders.TextClassifier, np.int64(5), time=False),
    "TextClassifier mean": text_encoder(text_encoders.TextClassifier, 5, "mean", time=False),
    "TokenClassifier": text_encoder(text_encoders.TokenClassifier, 5),
    "VisionTransformer": Row(
        functools.partial(models.VisionTransformer, **PICTURE, **STACK, dropout=0.5),
        (RANDOM.uniform(size=(B, 4, 6, 3)).astype("float32"),),
        None,
        (0,),
    ),
}
EACH = pytest.mark.parametrize("name", ROWS)
STEPPING = [name for name, row in ROWS.items() if row.steps]
CAUSAL = pytest.mark.parametrize("name", STEPPING)
TRANSLATORS = pytest.mark.parametrize(
    "name", [name for name in STEPPING if len(ROWS[name].inputs) == 2]
)


@functools.cache
def random_model(name):
    """A row's model with random weights. Not to be changed."""
    model = ROWS[name].make()
    ROWS[name].call(model)
    random = np.random.default_rng(3)
    model.set_weights([random.normal(w, 0.3) for w in model.get_weights()])
    return model


@functools.cache
def output_of(name):
    """The output of that model for the row's inputs."""
    return ROWS[name].call(random_model(name))


@functools.cache
def encoded(name):
    """Its encoder's outputs for the row's sources."""
    return [random_model(name).encode(ids) for ids in ROWS[name].inputs[:-1]]


def test_each_registered_model_has_a_row():
    registered = {
        name.partition(">")[2]
        for name, kind in keras.saving.get_custom_objects().items()
        if name.startswith("keras_transformer>")
        and inspect.isclass(kind)
        and issubclass(kind, keras.Model)
    }
    assert registered == {name.split()[0] for name in ROWS}


@EACH
def test_a_config_makes_an_equal_copy(name):
    row, model = ROWS[name], random_model(name)
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    assert (type(clone).__name__, clone.hyperparameters) == (name.split()[0], model.hyperparameters)
    assert [w.path for w in clone.weights] == [w.path for w in model.weights]
    assert len(clone.variables) == len(model.variables)
    assert all(layer.built for layer in clone._flatten_layers())
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(row.call(clone), output_of(name))


@EACH
def test_keras_clones_the_layers(name):
    model = random_model(name)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(ROWS[name].call(clone), output_of(name))


@pytest.mark.parametrize("name", [name for name in ROWS if " " not in name or "0.5" in name])
def test_a_copy_is_frozen_where_the_model_is(name):
    model = ROWS[name].make()
    model.embedding.trainable = False
    clone = type(model).from_config(model.get_config())
    frozen = [weight.path for weight in model.embedding.weights]
    for copy in (model, clone):
        assert [weight.path for weight in copy.weights if not weight.trainable] == frozen
        copy.embedding.trainable = True
        assert len(copy.trainable_weights) == len(model.weights)
    model.trainable = False
    clone = type(model).from_config(model.get_config())
    assert not clone.trainable
    assert not any(weight.trainable for weight in clone.weights)


@EACH
def test_logits_and_weights_are_float32_under_mixed_bfloat16(name):
    row = ROWS[name]
    mixed = row.make(dtype="mixed_bfloat16")
    outputs = [row.call(mixed), output_of(name)]
    among = {*("float32",), *(("bfloat16",) if name == "BareTextEncoder" else ())}
    assert {keras.backend.standardize_dtype(out.dtype) for out in outputs} <= among
    assert {w.dtype for w in mixed.weights} == {"float32"}
    stacks = [layer for layer in mixed.layers if "coder" in layer.name or "pred" in layer.name]
    assert stacks
    assert {layer.compute_dtype for layer in stacks} == {"bfloat16"}


def test_the_loss_of_a_model_in_float16_is_scaled():
    mixed = models.Transformer(**SIZES, dtype="mixed_float16")
    for model in (mixed, models.Transformer.from_config(mixed.get_config())):
        model.compile("adam", "mse")
        assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def dtypes_of(state):
    return [keras.backend.standardize_dtype(part.dtype) for part in keras.tree.flatten(state)]


@CAUSAL
def test_steps_under_mixed_bfloat16_keep_the_state_s_dtype(name):
    """A loop's state may not change its dtype from turn to turn."""
    row = ROWS[name]
    mixed = row.make(dtype="mixed_bfloat16")
    row.call(mixed)
    *sources, target = row.inputs
    stepper = mixed.stepper()
    before = stepper.start(B)
    memories = [mixed.encode(ids) for ids in sources]
    _, after, _ = stepper(target[:, None, 0], np.int32(0), before, *memories)
    assert dtypes_of(before) == dtypes_of(after)
    # Sums over all positions so far.
    assert {*dtypes_of(before)} == {"float32" if "linear" in name else "bfloat16"}


@pytest.mark.slow
@TRANSLATORS
def test_weights_in_bfloat16_give_almost_the_same_logits(name):
    row = ROWS[name]
    narrow = row.make(dtype=models.translation_policy("bfloat16"))
    row.call(narrow)
    narrow.set_weights(random_model(name).get_weights())
    dtypes = {weight.dtype for weight in narrow.trainable_weights if "norm" not in weight.path}
    assert dtypes == {"bfloat16"}
    assert 0 < np.abs(row.call(narrow) - output_of(name)).max() < 0.3


@EACH
def test_dropout_acts_in_training_and_nowhere_else(name):
    row, model = ROWS[name], random_model(name)
    np.testing.assert_array_equal(row.call(model, training=False), output_of(name))
    assert np.abs(row.call(model, training=True) - output_of(name)).max() > 0.01


def real(row, out):
    return out if row.lengths is None else out[np.arange(out.shape[1]) < row.lengths[:, None]]


@EACH
def test_padding_and_batch_mates_do_not_change_outputs(name):
    row, model = ROWS[name], random_model(name)
    expected = output_of(name)
    turned = [
        np.pad(array, [(0, 0), (0, more), *[(0, 0)] * (array.ndim - 2)])[::-1]
        for array, more in zip(row.inputs, row.widening, strict=True)
    ]
    output = row.call(model, turned)[::-1]
    if row.lengths is not None:
        output = output[:, : expected.shape[1]]
    np.testing.assert_allclose(real(row, output), real(row, expected), rtol=0, atol=5e-5)
    alone = row.call(model, [array[1:2] for array in row.inputs])
    np.testing.assert_allclose(alone[0], expected[1], rtol=0, atol=5e-5)
    # A control: tokens in the place of padding change the output, but not that of a language model,
    # to which they come later.
    first = row.inputs[0]
    filled = row.call(model, (np.where(first == 0, 5, first), *row.inputs[1:]))
    is_padded = len(row.inputs) > 1
    assert (np.abs(real(row, filled) - real(row, expected)).max() > 0.01) == is_padded


@CAUSAL
def test_outputs_depend_on_earlier_tokens_and_not_on_later_ones(name):
    row, model = ROWS[name], random_model(name)
    *source, target = row.inputs
    changed = np.where(np.arange(T) < 2, target, 3)
    before, after = output_of(name), row.call(model, (*source, changed))
    np.testing.assert_allclose(before[:, :2], after[:, :2], rtol=0, atol=1e-5)
    assert (np.abs(before[:, 2:] - after[:, 2:]).max(axis=-1) > 0).all()


def steps(model, targets, encoded, forget=False):
    """Logits and attention of each step for K hypotheses a sentence, (B, K, T, ...)."""
    stepper = model.stepper()
    state = start = stepper.start(targets.shape[0] * targets.shape[1])
    outputs = []
    for position in range(targets.shape[2]):
        step = stepper(targets[:, :, position], np.int32(position), state, *encoded)
        outputs.append(step)
        state = start if forget else step[1]
    logits = np.stack([np.array(output[0]) for output in outputs], axis=2)
    return logits, [output[2] for output in outputs]


@CAUSAL
def test_a_stepper_gives_the_logits_of_the_whole_target(name, monkeypatch):
    row, model = ROWS[name], random_model(name)
    *source, target = row.inputs
    targets = np.stack([target, np.where(target > 12, 9, target)], axis=1)
    logits, attention = steps(model, targets, encoded(name))
    assert logits.dtype == "float32"
    rows = (*(np.repeat(ids, 2, axis=0) for ids in source), targets.reshape(-1, T))
    whole = row.call(model, rows)
    np.testing.assert_allclose(logits.reshape(whole.shape), whole, rtol=0, atol=5e-5)
    if source:
        of_last = np.array(model.attention_weights(*rows)["cross"])[:, -1].mean(axis=1)
        shares = np.stack([np.array(step) for step in attention], axis=2)
        np.testing.assert_allclose(shares.reshape(of_last.shape), of_last, rtol=0, atol=5e-6)
    else:
        assert attention == [None] * T
        shares = np.array(model.attention_weights(*rows)["decoder"])
        assert shares.shape == (2 * B, 2, 2, T, T)
        np.testing.assert_allclose(shares.sum(axis=-1), 1, rtol=1e-6)
        assert not np.triu(shares, 1).any()
    # A table that is too large to be laid out is read in place.
    monkeypatch.setattr(embedding, "MOST_LAID_OUT", 0)
    in_place, _ = steps(model, targets, encoded(name))
    np.testing.assert_allclose(in_place, logits, rtol=0, atol=5e-5)
    # A control: a stepper that forgets.
    forgetful, _ = steps(model, targets[:, :, :3], encoded(name), forget=True)
    assert np.abs(forgetful - logits[:, :, :3])[:, :, 2:].max() > 0.01
