"""The laws of every registered layer: a row a layer, and a registered layer without a row fails.
What a layer computes is compared with an oracle in tests/layers.
"""

import dataclasses
import functools
import importlib
import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer
from keras_transformer import layers
from keras_transformer.layers.attention_variants.relative_positions import RelativeBias, Rotary
from keras_transformer.layers.attention_variants.restricted import LocalHeads
from keras_transformer.layers.scaled_dot_product import Additive, DotProduct, SoftmaxHeads

ROOT = pathlib.Path(keras_transformer.__file__).parent
B, T, S, D = 3, 5, 6, 8
LENGTHS = np.array([4, 6, 1])
RANDOM = np.random.default_rng(0)


def random(*shape):
    return RANDOM.normal(size=shape).astype("float32")


X = random(B, T, D)
MEMORY = random(B, S, D)
IDS = RANDOM.integers(1, 9, (B, T))
CAUSAL = {"attention_mask": np.array(layers.causal_mask(S))}


@dataclasses.dataclass
class Row:
    """A layer, with no argument at its default but those in `at_default`; its inputs; the argument
    that masks padding, and the inputs that it masks; what makes it causal, where something does;
    and the weights that only another call uses.
    """

    kind: Callable
    arguments: dict[str, Any]
    inputs: tuple
    mask: str = ""
    masked: tuple[int, ...] = ()
    causal: dict[str, Any] | None = None
    call: dict[str, Any] = dataclasses.field(default_factory=dict)
    at_default: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def make(self, **more):
        return self.kind(**self.arguments, **more)

    def random_layer(self, **more):
        """With random weights: a gain of 1 or a bias of 0 may hide a mistake."""
        layer = self.make(**more)
        self.output(layer)
        rng = np.random.default_rng(1)
        layer.set_weights([rng.normal(weight, 0.1) for weight in layer.get_weights()])
        return layer

    def output(self, layer, *inputs, **named):
        """The layer's output without its by-products."""
        outputs = layer(*(inputs or self.inputs), **self.call, **named)
        return outputs[0] if isinstance(outputs, tuple) else outputs


SIZES = {"num_heads": 2, "d_model": D, "d_ff": 16}
WIDTHS = {"d_k": 3, "d_v": 5}
VARIANTS = {
    **SIZES,
    "d_k": 4,
    "d_v": 5,
    "dropout": 0.3,
    "activation": "gelu",
    "norm": layers.PreNorm,
    "heads": LocalHeads(2, positions=Rotary(), similarity=DotProduct(), dropout=0.1),
    "feed_forward": layers.GatedFeedForward,
    "activation_dropout": 0.2,
    "attention_bias": True,
    "norm_epsilon": 1e-3,
}
STACK = {"num_layers": 2, "trainable": False}
BASELINE = {"num_layers": 2, "d_model": D, "dropout": 0.5}
LAYER = {"output_initializer": "he_normal"}
HEADS = SoftmaxHeads(Additive(), RelativeBias(False, 8, 20), dropout=0.1)
LEARNED = layers.LearnedEncoding(5)
BUCKETS = {"num_buckets": 8, "max_distance": 9}
# Variants of the paper's attention, in a layer that is otherwise the same.
VARIANTS_OF_ATTENTION = {
    "additive": SoftmaxHeads(Additive(), dropout=0.2),
    "dot_product": SoftmaxHeads(DotProduct(), dropout=0.2),
    "relative": SoftmaxHeads(positions=RelativeBias(True, **BUCKETS), dropout=0.2),
    "relative, causal": SoftmaxHeads(positions=RelativeBias(False, **BUCKETS), dropout=0.2),
    "alibi": SoftmaxHeads(positions=layers.LinearBias(), dropout=0.2),
    "shaw": SoftmaxHeads(positions=layers.RelativeKeysAndValues(2), dropout=0.2),
    "rotary": SoftmaxHeads(positions=Rotary(), dropout=0.2),
    "local": LocalHeads(3, dropout=0.2),
    "sparse": layers.SparseHeads(2, dropout=0.2),
    "linear": layers.LinearHeads(),
    "low_rank": layers.LowRankHeads(4, max_positions=6, dropout=0.2),
}
SUBLAYER = {"sublayer": lambda x: (2 * x, "by-product")}
ENCODER = {"mask": "attention_mask", "masked": (0,)}
DECODER = {"mask": "memory_mask", "masked": (1,)}
TOKENS = np.where(np.arange(S) < LENGTHS[:, None], 5, 0)


def decoder(kind, **more):
    arguments = {**VARIANTS, "cross_heads": SoftmaxHeads(Additive()), **more}
    return Row(kind, arguments, (X, MEMORY), **DECODER, at_default=("has_memory",))


def of_norm(kind):
    return Row(kind, {"dropout": 0.5, "epsilon": 1e-3}, (X,), call=SUBLAYER)


# By registered name; a word behind the name marks another row of the same layer.
ROWS = {
    "MultiHeadAttention": Row(
        layers.MultiHeadAttention,
        {**WIDTHS, "num_heads": 4, "d_model": D, "heads": HEADS, "use_bias": True, **LAYER},
        (X, X, X),
    ),
    "MultiHeadAttention of a memory": Row(
        layers.MultiHeadAttention,
        {**WIDTHS, "num_heads": 4, "d_model": D},
        (X, MEMORY, MEMORY),
        mask="attention_mask",
        masked=(1, 2),
    ),
    **{
        f"MultiHeadAttention, {name}": Row(
            layers.MultiHeadAttention,
            {**WIDTHS, "d_k": 4, "num_heads": 2, "d_model": D, "heads": heads},
            (MEMORY, MEMORY, MEMORY),
            mask="attention_mask",
            masked=(0, 1, 2),
        )
        for name, heads in VARIANTS_OF_ATTENTION.items()
    },
    "FeedForward": Row(
        layers.FeedForward, {"d_ff": 16, "activation": "gelu", "dropout": 0.2, **LAYER}, (X,)
    ),
    "GatedFeedForward": Row(
        layers.GatedFeedForward, {"d_ff": 16, "activation": "silu", "dropout": 0.2, **LAYER}, (X,)
    ),
    "Dropout": Row(layers.Dropout, {"rate": 0.3}, (X,)),
    "LayerNormalization": Row(layers.LayerNormalization, {"epsilon": 1e-3}, (X,)),
    "RmsNormalization": Row(layers.RmsNormalization, {"epsilon": 1e-3}, (X,)),
    "PostNorm": of_norm(layers.PostNorm),
    "PreNorm": of_norm(layers.PreNorm),
    "PreRmsNorm": of_norm(layers.PreRmsNorm),
    "PositionalEmbedding": Row(
        layers.PositionalEmbedding,
        {
            "vocabulary_size": 10,
            "d_model": D,
            "dropout": 0.3,
            "encoding": LEARNED,
            "token_dropout": 0.2,
            "scaled": False,
            "output_bias": True,
        },
        (IDS,),
        unused=("output_bias",),
    ),
    "EncoderLayer": Row(layers.EncoderLayer, {**VARIANTS, **LAYER}, (MEMORY,), **ENCODER),
    "Encoder": Row(layers.Encoder, {**VARIANTS, **STACK}, (MEMORY,), **ENCODER),
    "Encoder post": Row(
        layers.Encoder,
        {**SIZES, **WIDTHS, "num_layers": 2, "dropout": 0.5},
        (MEMORY,),
        **ENCODER,
        causal=CAUSAL,
    ),
    "Encoder pre": Row(
        layers.Encoder,
        {**SIZES, **WIDTHS, "num_layers": 2, "norm": layers.PreNorm},
        (MEMORY,),
        **ENCODER,
        causal=CAUSAL,
    ),
    "DecoderLayer": decoder(layers.DecoderLayer, **LAYER),
    "Decoder": decoder(layers.Decoder, **STACK),
    "Decoder post": Row(
        layers.Decoder,
        {**SIZES, **WIDTHS, "num_layers": 2, "dropout": 0.5},
        (X, MEMORY),
        **DECODER,
        causal={},
    ),
    "Decoder pre": Row(
        layers.Decoder,
        {**SIZES, **WIDTHS, "num_layers": 2, "norm": layers.PreNorm},
        (X, MEMORY),
        **DECODER,
        causal={},
    ),
    "Decoder alone": Row(
        layers.Decoder,
        {**SIZES, **STACK, "has_memory": False, "attention_bias": True, "norm_epsilon": 1e-3},
        (X,),
        causal={},
    ),
    "RecurrentEncoder": Row(layers.RecurrentEncoder, BASELINE, (MEMORY,), **ENCODER),
    "RecurrentDecoder": Row(layers.RecurrentDecoder, BASELINE, (X, MEMORY), **DECODER, causal={}),
    "ConvolutionBlock": Row(
        layers.ConvolutionBlock,
        {"d_model": D, "kernel_size": 3, "dropout": 0.5, "padding": "causal"},
        (X,),
        causal={},
    ),
    "ConvolutionalEncoder": Row(
        layers.ConvolutionalEncoder, {**BASELINE, "kernel_size": 5}, (MEMORY,), **ENCODER
    ),
    "ConvolutionalDecoder": Row(
        layers.ConvolutionalDecoder,
        {**BASELINE, "kernel_size": 5},
        (X, random(B, S, 2 * D)),
        **DECODER,
        causal={},
    ),
    "SegmentEmbedding": Row(
        layers.SegmentEmbedding, {"segments": 3, "dropout": 0.5, "epsilon": 1e-3}, (X, IDS % 3)
    ),
    "PiecePrediction": Row(
        layers.PiecePrediction, {"activation": "relu", "epsilon": 1e-3}, (X, IDS[:, :2] % T)
    ),
    "PieceBias": Row(layers.PieceBias, {}, (X,)),
    "FirstState": Row(layers.FirstState, {}, (MEMORY, TOKENS)),
    "MeanState": Row(layers.MeanState, {}, (MEMORY, TOKENS)),
    "PatchEmbedding": Row(
        layers.PatchEmbedding,
        {"patch_size": 3, "d_model": D, "dropout": 0.5},
        (random(B, 6, 9, 3),),
    ),
}
# Layers that are no sublayers, by the file of the tests that have them.
ELSEWHERE = {
    "layers/attention_variants/test_variants_of_attention.py": {
        *("Additive", "DotProduct", "LinearHeads", "LocalHeads", "LowRankHeads", "RelativeBias"),
        *("LinearBias", "RelativeKeysAndValues", "Rotary", "SoftmaxHeads", "SparseHeads"),
    },
    "layers/test_embedding.py": {
        *("HalvesEncoding", "LearnedEncoding", "NoEncoding", "ProposalHeads"),
    },
    "layers/test_linear_maps.py": {"Conv1D", "Dense"},
}
# Default parts of other layers, and a part of a decoder that has no output of its own.
PARTS = {"SinusoidalEncoding", "NoRelativePositions", "ScaledDotProduct", "MultiStepAttention"}
EACH = pytest.mark.parametrize("name", ROWS)


@functools.cache
def random_layer(name):
    """A row's layer with random weights. Not to be changed."""
    return ROWS[name].random_layer()


@functools.cache
def output_of(name):
    """The output of that layer for the row's inputs."""
    return np.array(ROWS[name].output(random_layer(name)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.MultiHeadAttention(2, D, d_k=0), "`d_k`.*at least 1.*d_k=0"),
        (lambda: layers.MultiHeadAttention(2, D, d_v=-3), "`d_v`.*d_v=-3"),
        (lambda: layers.MultiHeadAttention(0, D), "`num_heads` must be an integer, at least 1"),
        (lambda: layers.MultiHeadAttention(2.0, D), "`num_heads` must be an integer.*=2.0"),
        (lambda: layers.MultiHeadAttention(2, "8"), "`d_model` must be an integer.*='8'"),
        (lambda: layers.EncoderLayer(**SIZES, d_k=0), "`d_k`"),
        (lambda: layers.Encoder(0, **SIZES), "`num_layers`.*at least 1.*num_layers=0"),
        (lambda: layers.Decoder(1.5, **SIZES), "`num_layers`"),
        (lambda: layers.DecoderLayer(**SIZES, has_memory=False, cross_heads=HEADS), "`cross_heads"),
        (lambda: layers.ProposalHeads(1, 2, 16), "`block_size`.*at least 2"),
        (lambda: layers.LocalHeads(0), "`radius`"),
        (lambda: layers.SparseHeads(-1), "`stride`"),
        (lambda: layers.LowRankHeads(0), "`rank`"),
        (lambda: RelativeBias(num_buckets=3), "`num_buckets`.*at least 4"),
        (lambda: RelativeBias(False, num_buckets=1), "`num_buckets`.*at least 2"),
        (lambda: RelativeBias(max_distance=None), "`max_distance`.*at least 1"),
        (lambda: layers.SegmentEmbedding(2.5), "`segments` must be an integer"),
        (lambda: layers.ConvolutionBlock(D, 0), "`kernel_size`"),
        (lambda: layers.ConvolutionBlock(D, 3, padding="valid"), "`padding`"),
        (lambda: layers.Encoder(1, **SIZES, norm_epsilon=None), r"`epsilon` .*epsilon=None\. Try"),
        (lambda: layers.RelativeKeysAndValues(-1), "`clip`.*at least 0"),
        (lambda: layers.LearnedEncoding(0), "`max_positions`"),
        (lambda: layers.PositionalEmbedding(0, D), "`vocabulary_size`"),
        (lambda: layers.PatchEmbedding(0, D), "`patch_size`"),
        (lambda: layers.RecurrentEncoder(0, D), "`num_layers`"),
        (lambda: layers.RecurrentEncoder(1, 7), r"`d_model` must be even.*=7\. Try 8\."),
        (lambda: layers.RecurrentDecoder(0, D), "`num_layers`"),
        (lambda: layers.ConvolutionalEncoder(0, D), "`num_layers`"),
        (lambda: layers.ConvolutionalDecoder(1, D, 0), "`kernel_size`"),
        (lambda: layers.HalvesEncoding().added(X[..., :7], IDS), "`d_model` must be even.*=7. Try"),
        # A row of a mask of pairs would be taken for the mask of padding.
        *(
            (lambda kind=kind: kind(1, D)(MEMORY, **CAUSAL), r"[^:]*: pass .*\(B, 1, S\)\.")
            for kind in (layers.RecurrentEncoder, layers.ConvolutionalEncoder)
        ),
        (lambda: layers.PreRmsNorm(epsilon=0), "`epsilon` must be above 0.*epsilon=0"),
        (lambda: layers.Encoder(1, **SIZES, norm_epsilon=-1.0), "`epsilon`.*=-1.0"),
        (lambda: layers.sinusoidal_positions(IDS, 7), r"`d_model` must be even.*=7\. Try 8\."),
        (lambda: layers.PositionalEmbedding(10, 7)(IDS), r"[^`]*`d_model` must.*=7\. Try 8\."),
        (lambda: layers.causal_mask(None), "`length` must be an integer or a tensor"),
        (lambda: layers.HalvesEncoding(rates="Paper"), "`rates` must be .*='Paper'"),
        (lambda: Rotary().build((None, 2, None, 7), (None, 2, None, 7)), "`d_k`.*=7. Try 8"),
        *(
            (lambda rate=rate: layers.Dropout(rate), r"`rate` must be .* \[0, 255/256\].*rate=")
            for rate in (-0.1, 1.0, float("nan"), None, "0.1")
        ),
        # A part of the wrong kind.
        *(
            (lambda bad=bad: layers.EncoderLayer(**SIZES, feed_forward=bad), "`feed_forward` must")
            for bad in (layers.EncoderLayer, None, "Dense", 3)
        ),
        (lambda: layers.Encoder(1, **SIZES, residual_initialization="glorot"), "`residual_initial"),
        (lambda: layers.MultiHeadAttention(2, D, heads="local:3"), "`heads`.*Received: 'local"),
        (lambda: layers.MultiHeadAttention(2, D, heads=LocalHeads), "`heads`.*class.*LocalHe"),
        (lambda: layers.MultiHeadAttention(2, D, heads=Rotary()), "`heads`.*of AttentionHeads"),
        (lambda: SoftmaxHeads(positions=LEARNED), "`positions`.*of RelativePositions"),
        (lambda: layers.PositionalEmbedding(9, D, encoding=Rotary()), "`encoding`.*of Position"),
    ],
)
def test_an_argument_that_no_layer_can_have_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


def test_a_stack_refuses_an_initializer_of_its_layers():
    with pytest.raises(TypeError, match=r"multiple values .*'output_initializer'"):
        layers.Encoder(1, **SIZES, output_initializer="zeros")


def test_sizes_may_be_numpy_integers():
    sizes = {name: np.int64(size) for name, size in SIZES.items()}
    assert layers.Encoder(np.int32(1), **sizes)(X).shape == X.shape


def test_the_mean_of_a_text_of_padding_alone_is_zero():
    assert not np.array(layers.MeanState()(X, np.zeros((B, T), "int32"))).any()


MASKED = pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.mask])


def test_each_registered_layer_has_a_row():
    for path in (ROOT / "layers").rglob("*.py"):
        importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    registered = {
        name.partition(">")[2]
        for name, kind in keras.saving.get_custom_objects().items()
        if inspect.isclass(kind)
        and issubclass(kind, keras.layers.Layer)
        and kind.__module__.startswith("keras_transformer.layers.")
    }
    kinds = {name for name in ROWS if " " not in name}
    assert all(ROWS[name].kind.__name__ == name for name in kinds)
    assert registered == kinds.union(PARTS, *ELSEWHERE.values())
    for path, names in ELSEWHERE.items():
        source = (ROOT.parent / "tests" / path).read_text(encoding="utf-8")
        assert all(f"{name}(" in source or f"({name}," in source for name in names), path


def at_their_default(row):
    """Arguments that a config could leave out unnoticed."""
    config = row.make().get_config()
    arguments = inspect.signature(row.kind.__init__).parameters
    return {
        name
        for name, argument in arguments.items()
        if argument.default is not argument.empty and config.get(name) == argument.default
    } - {"activity_regularizer", "trainable", "dtype", "autocast", "name", *row.at_default}


@EACH
def test_a_config_makes_an_equal_copy(name):
    row = ROWS[name]
    if " " not in name:
        assert at_their_default(row) <= {"residual_initialization"}
    layer = random_layer(name)
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert (type(clone), clone.get_config()) == (row.kind, layer.get_config())
    row.output(clone)
    clone.set_weights(layer.get_weights())
    np.testing.assert_array_equal(row.output(clone), output_of(name))


def test_a_subclass_may_name_the_arguments_of_its_base_class_again():
    class Named(layers.EncoderLayer):
        def __init__(self, num_heads, d_model, d_ff, own=1, **kwargs):
            super().__init__(num_heads, d_model, d_ff, **kwargs)
            self.own = own

    layer = Named(**SIZES, own=3, dropout=0.5)
    clone = Named.from_config(layer.get_config())
    assert (clone.own, clone.get_config()) == (3, layer.get_config())


def test_control_an_argument_at_its_default_is_seen():
    assert at_their_default(Row(layers.Dropout, {"rate": 0.0}, (X,))) == {"rate"}


@EACH
def test_the_output_shape_is_computed_without_a_call(name):
    row = ROWS[name]
    layer = random_layer(name)
    # Layers that are called in another way have more than one output.
    if not row.call and name != "PositionalEmbedding":
        shape = layer.compute_output_shape(*(array.shape for array in row.inputs))
        assert tuple(shape) == output_of(name).shape
        # As Keras' `summary` calls it.
        if len(named := layer._build_shapes_dict or {}) > 1:
            assert layer.compute_output_shape(**named) == shape


@EACH
def test_mixed_bfloat16_computes_in_bfloat16_near_float32_with_weights_in_float32(name):
    row = ROWS[name]
    layer = random_layer(name)
    mixed = row.random_layer(dtype="mixed_bfloat16")
    mixed.set_weights(layer.get_weights())
    masks = {row.mask: mask(S)} if row.mask else {}
    out = row.output(mixed, **masks)
    assert keras.backend.standardize_dtype(out.dtype) == "bfloat16"
    assert {sublayer.compute_dtype for sublayer in mixed._flatten_layers()} == {"bfloat16"}
    assert {weight.dtype for weight in mixed.weights} <= {"float32"}
    expected = np.array(row.output(layer, **masks))
    atol = 0.05 * max(1, np.abs(expected).max())
    np.testing.assert_allclose(keras.ops.cast(out, "float32"), expected, rtol=0, atol=atol)


@EACH
def test_dropout_acts_in_training_and_nowhere_else(name):
    row = ROWS[name]
    layer = random_layer(name)
    plain = output_of(name)
    np.testing.assert_array_equal(row.output(layer, training=False), plain)
    # Linear attention has no weights to drop.
    drops = "linear" not in name and {"rate", "dropout", "heads"} & row.arguments.keys()
    dropped = np.array(row.output(layer, training=True))
    assert (np.abs(dropped - plain).max() > 0.01) == bool(drops)


@EACH
def test_each_weight_gets_a_gradient(name, monkeypatch):
    row = ROWS[name]
    layer = random_layer(name)
    monkeypatch.setattr(layer, "trainable", True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(row.output(layer) ** 3)
    variables = [variable.value for variable in layer.trainable_variables]
    for variable, gradient in zip(layer.weights, tape.gradient(loss, variables), strict=True):
        is_used = gradient is not None and np.abs(tf.convert_to_tensor(gradient)).max() > 0
        assert is_used == (variable.name not in row.unused), variable.path


@EACH
def test_a_layer_that_is_not_trainable_freezes_the_layers_within(name):
    """Or a loaded model would train what was frozen: Keras looks at each weight."""
    row = ROWS[name]
    for trainable in (False, True):
        layer = row.kind(**{**row.arguments, "trainable": trainable})
        row.output(layer)
        assert {weight.trainable for weight in layer.weights} <= {trainable}


def mask(length, rows=slice(None)):
    return (np.arange(length) < LENGTHS[rows, None])[:, None]


def real_outputs(row, out):
    """The outputs at tokens, if the masked input is the one that has outputs; else all outputs."""
    out = np.array(out)
    return out[np.arange(out.shape[1]) < LENGTHS[:, None]] if 0 in row.masked else out


@MASKED
def test_padding_and_batch_mates_do_not_change_outputs(name):
    row = ROWS[name]
    layer = random_layer(name)
    expected = real_outputs(row, row.output(layer, **{row.mask: mask(S)}))
    wide = list(row.inputs)
    for number in row.masked:
        noise = random(B, S + 3, wide[number].shape[-1])
        inside = mask(S + 3)[:, 0, :, None]
        padded = np.pad(wide[number], [(0, 0), (0, 3), (0, 0)])
        wide[number] = np.where(inside, padded, noise)
    turned = [array[::-1] for array in wide]
    output = np.array(row.output(layer, *turned, **{row.mask: mask(S + 3)[::-1]}))[::-1]
    output = real_outputs(row, output[:, : row.inputs[0].shape[1]])
    np.testing.assert_allclose(output, expected, rtol=0, atol=4e-6)
    alone = [array[:1] for array in wide]
    single = np.array(row.output(layer, *alone, **{row.mask: mask(S + 3, slice(1))}))[0]
    count = LENGTHS[0] if 0 in row.masked else T
    first = expected[: LENGTHS[0]] if 0 in row.masked else expected[0]
    np.testing.assert_allclose(single[:count], first, rtol=0, atol=4e-6)
    # A control: without the mask, padding is read.
    unmasked = np.array(row.output(layer, *wide))[:, : row.inputs[0].shape[1]]
    assert np.abs(real_outputs(row, unmasked) - expected).max() > 1e-3


@MASKED
def test_a_mask_for_all_rows_may_have_two_axes_or_integers_and_none_has_floats(name):
    row = ROWS[name]
    layer = random_layer(name)
    keys = np.arange(S) % 3 < 2
    whole = np.array(row.output(layer, **{row.mask: np.tile(keys, (B, 1, 1))}))
    for same in (keys[None], keys[None, None], keys[None].astype("int32")):
        output = row.output(layer, **{row.mask: same})
        np.testing.assert_allclose(output, whole, rtol=0, atol=4e-6)
    with pytest.raises(ValueError, match="must be booleans"):
        row.output(layer, **{row.mask: np.where(keys, 0.0, -1e9)[None, None]})


def test_the_weights_of_linear_heads_have_a_causal_mask_of_two_axes():
    layer = random_layer("MultiHeadAttention, linear")
    x = MEMORY[:, :2]
    causal = layers.causal_mask(2)
    for expected, actual in zip(
        layer.with_attention(x, x, x, causal=causal),
        layer.with_attention(x, x, x, causal=causal[0]),
        strict=True,
    ):
        np.testing.assert_array_equal(actual, expected)


@MASKED
def test_outputs_of_padding_alone_are_finite(name):
    row = ROWS[name]
    layer = random_layer(name)
    assert np.isfinite(row.output(layer, **{row.mask: np.zeros((B, 1, S), bool)})).all()


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.causal is not None])
def test_outputs_depend_on_earlier_tokens_and_not_on_later_ones(name):
    row = ROWS[name]
    layer = random_layer(name)
    x, *memory = row.inputs
    changed = x.copy()
    changed[:, 3] = random(B, D)
    before, after = (np.array(row.output(layer, a, *memory, **row.causal)) for a in (x, changed))
    np.testing.assert_allclose(before[:, :3], after[:, :3], rtol=1e-6, atol=1e-6)
    assert (before[:, 3] != after[:, 3]).any(axis=-1).all()
    # The kernel of a block reaches no farther.
    assert "Block" in name or (before[:, 4:] != after[:, 4:]).any(axis=-1).all()
    if row.causal:
        # A control: without the mask each position sees all.
        before, after = (np.array(row.output(layer, a, *memory)) for a in (x, changed))
        assert np.abs(before - after)[:, :3].max() > 0.01
