"""Figure 1 as one model: its weights, logits, saving, and learning by `model.fit`; ensembles of
such models; and its variants: what each replaces, and where. The laws of variants are rows of
laws/test_models.py.
"""

import math

import keras
import numpy as np
import pytest
from oracles import paper
from small_model import shaken

from keras_transformer.layers import Dropout
from keras_transformer.layers.attention_variants.linear_cost import LinearHeads, LowRankHeads
from keras_transformer.layers.attention_variants.relative_positions import (
    RelativeBias,
    RelativePositions,
)
from keras_transformer.layers.attention_variants.restricted import LocalHeads, SparseHeads
from keras_transformer.layers.scaled_dot_product import Additive, DotProduct, SoftmaxHeads
from keras_transformer.models import (
    ConvolutionalTranslator,
    Ensemble,
    Hyperparameters,
    LanguageModel,
    MaskedLanguageModel,
    RecurrentTranslator,
    TextClassifier,
    Transformer,
    sized_model,
)
from keras_transformer.runs.initialization import initialize
from keras_transformer.training.loss import (
    LabelAccuracy,
    LabelCrossEntropy,
    LabelSmoothedCrossEntropy,
)

SIZES = {"vocabulary_size": 11, "num_layers": 2, "d_model": 8, "d_ff": 16, "num_heads": 2}
SOURCE = np.array([[4, 5, 6, 7, 8, 2], [9, 10, 2, 0, 0, 0]])
TARGET = np.array([[2, 7, 6, 5, 4], [2, 10, 9, 0, 0]])
# Keras 3.15 hands TensorFlow's variables to NumPy 2.4 as they are.
SAVES = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
)


def test_every_width_is_that_of_its_hyperparameter():
    hp = Hyperparameters(11, 2, 8, 14, 3, d_k=5, d_v=7)
    shapes = {weight.path: tuple(weight.shape) for weight in Transformer(hp).weights}
    attention = {"query_kernel": (8, 15), "key_kernel": (8, 15), "value_kernel": (8, 21)}
    attention["output_kernel"] = (21, 8)
    feed_forward = {"inner/kernel": (8, 14), "inner/bias": (14,)}
    feed_forward |= {"outer/kernel": (14, 8), "outer/bias": (8,)}
    expected = {"embedding/table": (11, 8)}
    sublayers = {"self_attention": attention, "feed_forward": feed_forward}
    for stack, more in (("encoder", {}), ("decoder", {"cross_attention": attention})):
        for number in range(2):
            for sublayer, kernels in {**sublayers, **more}.items():
                place = f"{stack}/layer_{number}/{sublayer}"
                expected |= {f"{place}/{name}": shape for name, shape in kernels.items()}
                expected |= {f"{place}_norm/norm/{name}": (8,) for name in ("gamma", "beta")}
    assert shapes == expected


def test_logits_are_figure_1_in_float64():
    rng = np.random.default_rng(0)
    # With more noise, softmax would choose a single key.
    model = shaken(rng, Transformer(**SIZES, d_k=3, d_v=5), (SOURCE, TARGET), spread=0.3)
    table = model.embedding.get_weights()[0]
    mask = (SOURCE != 0)[:, None]
    memory = paper.embedding(SOURCE, table)
    x = paper.embedding(TARGET, table)
    causal = np.tril(np.ones((5, 5), bool))
    for layer in model.encoder.layers:
        memory = paper.encoder_layer(memory, paper.parts(layer), 2, mask)
    for layer in model.decoder.layers:
        x = paper.decoder_layer(x, memory, paper.parts(layer), 2, causal, mask)
    np.testing.assert_allclose(model((SOURCE, TARGET)), x @ table.T, rtol=0, atol=1e-5)


@SAVES
def test_the_dtype_policy_survives_saving(tmp_path):
    Transformer(**SIZES, dtype="mixed_bfloat16").save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").decoder.compute_dtype == "bfloat16"


def test_keras_quantizes_no_matrix_of_ours_and_warns():
    model = recurrent(11)
    expected = np.array(model((SOURCE, TARGET)))
    with pytest.warns(UserWarning, match="does not have a `quantize` method") as warnings:
        model.quantize("int8")
    assert any("Layer Dense " in str(warning.message) for warning in warnings)
    np.testing.assert_array_equal(model((SOURCE, TARGET)), expected)


def copying(sentences, length=4, seed=0):
    """Random sources to copy: the next token cannot be predicted from the target alone."""
    source = np.random.default_rng(seed).integers(4, 11, (sentences, length))
    target = np.pad(source, [(0, 0), (1, 1)], constant_values=3)
    return (source, target[:, :-1]), target[:, 1:]


@pytest.mark.parametrize(
    "variant",
    [
        # The toy run shows that post-norm learns.
        pytest.param(("post", "relu"), marks=pytest.mark.slow),
        ("pre", "gelu"),
        pytest.param(("pre", "swish"), marks=pytest.mark.slow),
    ],
    ids="-".join,
)
def test_fit_learns_to_copy(variant):
    norm, activation = variant
    unseen = learned(norm=norm, activation=activation)
    assert unseen["last_loss"] < 0.2 * unseen["first_loss"]
    assert unseen["loss"] < 0.25 * math.log(11)
    assert unseen["accuracy"] > 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    [
        *(
            {"attention": name}
            for name in ("dot_product", "additive", "local:2", "sparse:2", "linear")
        ),
        {"attention": "low_rank:4", "max_positions": 8},
        *(
            {"positions": name, "max_positions": 8}
            for name in ("learned", "relative", "shaw", "rotary")
        ),
        {"activation": "swiglu", "tie_embeddings": "none"},
        {"attention_dropout": 0.1, "activation_dropout": 0.1, "tie_embeddings": "decoder"},
    ],
    ids=lambda variant: ",".join(map(str, variant.values())),
)
def test_fit_learns_to_copy_with_each_variant(variant):
    assert learned(norm="pre", epochs=20, sentences=2048, **variant)["accuracy"] > 0.95


def learned(epochs=12, sentences=512, **variant):
    """Train a model to copy: its measures on unseen sentences, its first loss and its last."""
    keras.utils.set_random_seed(0)
    sizes = {**SIZES, "num_layers": 1, "d_model": 32, "d_ff": 64}
    model = Transformer(**sizes, dropout=0.0, **variant)
    model.compile(
        keras.optimizers.Adam(3e-3, beta_2=0.98),
        LabelSmoothedCrossEntropy(0.0),
        weighted_metrics=[LabelAccuracy(), LabelCrossEntropy()],
        jit_compile=False,
    )
    examples = copying(sentences)
    history = model.fit(*examples, batch_size=32, epochs=epochs, verbose=0).history
    model.run_eagerly = True  # two batches; a graph would take longer to make
    unseen = model.evaluate(*copying(64, seed=1), verbose=0, return_dict=True)
    rounding = float(np.finfo(np.float32).eps)  # of a probability near 1
    assert unseen["cross_entropy"] == pytest.approx(unseen["loss"], rel=1e-4, abs=rounding)
    return {**unseen, "first_loss": history["loss"][0], "last_loss": history["loss"][-1]}


HP = Hyperparameters(50, d_model=8, num_heads=2)


def recurrent(size):
    return RecurrentTranslator(vocabulary_size=size, num_layers=1, d_model=8)


NO_HP = r"^`hyperparameters` must be Hyperparameters\(\.\.\.\), with no field .*Received: "


@pytest.mark.parametrize(
    ("make", "message"),
    [
        # Once these were taken for hyperparameters, lost beside them, or ignored.
        (lambda: Transformer(50), rf"{NO_HP}50 and no field\. Or pass .* Transformer\(d_mod"),
        (lambda: Transformer(HP, d_ff=3), f"{NO_HP}.* and d_ff"),
        (lambda: TextClassifier({"d_ff": 3}, labels=3), f"{NO_HP}.*'d_ff': 3"),
        (lambda: TextClassifier(HP, labels=["a", "b"]), "`labels` must be an integer, at least 1"),
        (lambda: LanguageModel(**SIZES, num_decoder_layers=1), "`num_decoder_layers` decides"),
        (lambda: LanguageModel(**SIZES, source_end=False), r"`source_end` .*end=False\. Leave"),
        (lambda: LanguageModel(**SIZES, block_size=2), "`block_size` decides nothing in a Lang"),
        (lambda: LanguageModel(**SIZES, attention="low_rank:2"), "attention=low_rank:2 mixes"),
        (lambda: MaskedLanguageModel(**SIZES, output_bias=True), "`output_bias` decides nothing"),
        (lambda: Ensemble([recurrent(11), recurrent(12)]), r"2, of vocabulary_size=\[11, 12\]"),
        (lambda: Ensemble([]), "at least one"),
    ],
)
def test_arguments_of_a_model_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Ensembles: the mean of the models' probabilities, in NumPy.
SOURCES = np.array([[5, 6, 7, 3], [8, 3, 0, 0]])
TARGETS = np.array([[2, 5, 9], [2, 4, 4]])
ONE_LAYER = {"vocabulary_size": 11, "num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}


@pytest.fixture(scope="module")
def models():
    keras.utils.set_random_seed(0)
    small = {"vocabulary_size": 11, "num_layers": 2, "d_model": 12}
    recurrent = RecurrentTranslator(**small)
    convolutional = ConvolutionalTranslator(**small)
    return [Transformer(**ONE_LAYER), recurrent, convolutional]


def mean_log_probabilities(models):
    probabilities = []
    for model in models:
        logits = np.array(model((SOURCES, TARGETS)), "float64")
        probabilities.append(paper.softmax(logits))
    return np.log(np.mean(probabilities, axis=0))


def test_an_ensemble_s_log_p_is_that_of_the_mean_probability(models):
    expected = mean_log_probabilities(models)
    np.testing.assert_allclose(Ensemble(models)((SOURCES, TARGETS)), expected, rtol=0, atol=1e-5)
    assert np.abs(mean_log_probabilities(models[:1]) - expected).max() > 0.01


def test_an_ensemble_has_the_weights_of_all_its_models_and_gives_no_attention(models):
    ensemble = Ensemble(models)
    expected = [weight for model in models for weight in model.weights]
    assert [id(weight) for weight in ensemble.weights] == [id(weight) for weight in expected]
    assert ensemble.hyperparameters == models[0].hyperparameters
    assert [ensemble.gives_attention, models[0].gives_attention] == [False, True]


def test_an_ensemble_s_steps_equal_its_call(models):
    ensemble = Ensemble(models)
    expected = mean_log_probabilities(models)
    stepper = ensemble.stepper()
    encoded = ensemble.encode(SOURCES)
    state = stepper.start(2)
    assert stepper.growing == [model.stepper().growing for model in models]
    np.testing.assert_array_equal(stepper.is_token(encoded), SOURCES != 0)
    for t in range(3):
        logits, state, attention = stepper(TARGETS[:, t : t + 1], t, state, encoded)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], rtol=0, atol=1e-5)
        each = [
            np.mean(model.attention_weights(SOURCES, TARGETS)["cross"][:, -1, :, t], axis=1)
            for model in models
        ]
        np.testing.assert_allclose(attention[:, 0], np.mean(each, axis=0), rtol=1e-6, atol=1e-6)


V, LENGTH = 23, 5
OF_VARIANTS = {"vocabulary_size": V, "num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}


def sentences(count):
    """Sources of different lengths, padded, and targets."""
    random = np.random.default_rng(0)
    source = random.integers(4, V, (count, LENGTH))
    source[np.arange(LENGTH) >= random.integers(2, LENGTH + 1, (count, 1))] = 0
    return source, random.integers(1, V, (count, LENGTH))


@pytest.mark.parametrize("start", ["depth_scaled", "glorot"])
def test_the_last_matrix_of_each_branch_starts_at_the_chosen_scale(start):
    """The largest of 1,024 uniform numbers or more is close to the bound of their distribution."""
    sizes = {**OF_VARIANTS, "num_layers": 2, "d_model": 32, "d_ff": 64}
    transformer = Transformer(**sizes, residual_initialization=start)
    for stack, sublayers in ((transformer.encoder, 2), (transformer.decoder, 3)):
        branches = sublayers * len(stack.layers)
        last = ("/output_kernel", "/outer/kernel")
        matrices = [w for layer in stack.layers for w in layer.weights if len(w.shape) == 2]
        assert sum(w.path.endswith(last) for w in matrices) == branches
        for w in matrices:
            scale = branches if start == "depth_scaled" and w.path.endswith(last) else 1
            bound = (6 / sum(w.shape) / scale) ** 0.5
            assert 0.95 * bound < np.abs(w.numpy()).max() <= bound, w.path
        # Each layer has random numbers of its own.
        kernels = {layer.self_attention.output_kernel.numpy().tobytes() for layer in stack.layers}
        assert len(kernels) == len(stack.layers)


def three(**variant):
    return sized_model.heads(Hyperparameters(**OF_VARIANTS, **variant))


def test_a_kind_of_attention_replaces_its_heads_and_no_others():
    def kinds(**variant):
        return [type(heads) for heads in three(**variant)]

    assert kinds() == [SoftmaxHeads] * 3
    assert kinds(attention="local:2") == [LocalHeads, LocalHeads, SoftmaxHeads]
    assert kinds(attention="sparse:2") == [SparseHeads, SparseHeads, SoftmaxHeads]
    assert kinds(attention="linear") == [LinearHeads, LinearHeads, SoftmaxHeads]
    assert kinds(attention="low_rank:2") == [LowRankHeads, SoftmaxHeads, SoftmaxHeads]
    for similarity, kind in (("dot_product", DotProduct), ("additive", Additive)):
        assert [type(heads.similarity) for heads in three(attention=similarity)] == [kind] * 3
    encoder, decoder, _ = three(attention="local:7")
    assert (encoder.radius, decoder.radius) == (7, 7)
    assert three(attention="low_rank:7", max_positions=9)[0].max_positions == 9


def test_relative_positions_are_in_self_attention_alone():
    positions = [heads.positions for heads in three(positions="relative")]
    assert [type(scheme) for scheme in positions] == [RelativeBias, RelativeBias, RelativePositions]
    assert [scheme.bidirectional for scheme in positions[:2]] == [True, False]


@pytest.mark.parametrize(
    ("ties", "names"),
    [
        ("three_way", ("embedding", "embedding", "embedding")),
        ("decoder", ("source_embedding", "embedding", "embedding")),
        ("none", ("source_embedding", "embedding", "projection")),
        ("inputs", ("embedding", "embedding", "projection")),
    ],
)
def test_tied_tables_are_the_same_layer(ties, names):
    model = Transformer(**OF_VARIANTS, tie_embeddings=ties)
    tables = (model.source_embedding, model.embedding, model.projection)
    assert tuple(table.name for table in tables) == names
    assert len({id(table) for table in tables}) == len(set(names))
    alone = LanguageModel(**OF_VARIANTS, tie_embeddings=ties)
    assert (alone.embedding.name, alone.projection.name) == names[1:]
    assert len([w for w in alone.weights if w.shape == (V, 8)]) == len(set(names[1:]))


def test_each_table_is_used_where_it_belongs():
    transformer = Transformer(**OF_VARIANTS, tie_embeddings="none", positions="none")
    source, target = sentences(2)
    memory = np.array(transformer.encode_with_attention(source)[0])
    logits = np.array(transformer((source, target)))
    for layer in (transformer.embedding, transformer.projection, transformer.source_embedding):
        layer.table.assign(layer.table.numpy()[::-1])
        assert np.abs(transformer((source, target)) - logits).max() > 0.01
        logits = np.array(transformer((source, target)))
        is_source = layer is transformer.source_embedding
        changed = transformer.encode_with_attention(source)[0]
        assert (np.abs(changed - memory).max() > 0.01) == is_source
        # Reversed rows of a projection reverse the logits and change nothing else.
        if layer is transformer.projection:
            layer.table.assign(layer.table.numpy()[::-1])
            reversed_logits = transformer((source, target))
            np.testing.assert_allclose(reversed_logits, logits[..., ::-1], rtol=1e-6, atol=1e-6)


def test_a_new_vocabulary_takes_the_rows_of_every_table():
    """Each table takes them by the pieces of its side."""
    old, new = (
        Transformer(**{**OF_VARIANTS, "vocabulary_size": size}, tie_embeddings="none")
        for size in (3, 4)
    )
    weights = {f"weights/{w.path}": w.numpy() for w in old.weights}
    pieces = {"source": ["c", "d", "a", "e"], "target": ["x", "f", "g", "y"]}
    old_pieces = {"source": ["a", "b", "c"], "target": ["y", "x", "z"]}
    initialize(new, weights, pieces, old_pieces)
    same = {"source_embedding": ([2, 0], [0, 2]), "embedding": ([3, 0], [0, 1])}
    for table, (rows, old_rows) in {**same, "projection": same["embedding"]}.items():
        array = next(w for w in new.weights if w.path == f"{table}/table").numpy()
        np.testing.assert_array_equal(array[rows], weights[f"weights/{table}/table"][old_rows])


def test_each_dropout_has_its_places_and_its_rate():
    rates = {"attention_dropout": 0.25, "activation_dropout": 0.5, "token_dropout": 0.2}
    transformer = Transformer(**OF_VARIANTS, dropout=0.3, **rates)
    rates = {}
    for layer in transformer._flatten_layers():
        if isinstance(layer, Dropout) and layer.rate:
            rates.setdefault((layer.name, layer.rate), []).append(layer)
    expected = {("weights_dropout", 0.25): 3, ("inner_dropout", 0.5): 2, ("whole_tokens", 0.2): 1}
    # Section 5.4: on the sums of embeddings and positions, and on each sublayer's output.
    expected |= {("sum_dropout", 0.3): 1, ("sublayer_dropout", 0.3): 2 + 3}
    assert {key: len(layers) for key, layers in rates.items()} == expected
    # A dropout of 0 has no random state.
    without = Transformer(**OF_VARIANTS, dropout=0.0)
    assert not any("seed" in variable.path for variable in without.variables)
    batch = sentences(3)
    plain = np.array(transformer(batch))
    for active in rates:
        for key, layers in rates.items():
            for layer in layers:
                layer.rate = key[1] if key == active else 0.0
        assert np.abs(transformer(batch, training=True) - plain).max() > 0.01
    np.testing.assert_array_equal(transformer(batch), plain)
