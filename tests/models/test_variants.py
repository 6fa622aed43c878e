"""The variants of section 3 in a whole model: what each replaces, and where. Their laws are rows of
tests/laws/test_models.py.
"""

import numpy as np
import pytest

from keras_transformer.layers import Dropout
from keras_transformer.layers.attention_variants.linear_cost import LinearHeads, LowRankHeads
from keras_transformer.layers.attention_variants.relative_positions import (
    RelativeBias,
    RelativePositions,
)
from keras_transformer.layers.attention_variants.restricted import LocalHeads, SparseHeads
from keras_transformer.layers.scaled_dot_product import Additive, DotProduct, SoftmaxHeads
from keras_transformer.models import Hyperparameters, LanguageModel, Transformer, sized_model
from keras_transformer.runs.initialization import initialize

V, LENGTH = 23, 5
SIZES = {"vocabulary_size": V, "num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}


def sentences(count):
    """Sources of different lengths, padded, and targets."""
    random = np.random.default_rng(0)
    source = random.integers(4, V, (count, LENGTH))
    source[np.arange(LENGTH) >= random.integers(2, LENGTH + 1, (count, 1))] = 0
    return source, random.integers(1, V, (count, LENGTH))


@pytest.mark.parametrize("start", ["depth_scaled", "glorot"])
def test_the_last_matrix_of_each_branch_starts_at_the_chosen_scale(start):
    """The largest of 1,024 uniform numbers or more is close to the bound of their distribution."""
    sizes = {**SIZES, "num_layers": 2, "d_model": 32, "d_ff": 64}
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
    return sized_model.heads(Hyperparameters(**SIZES, **variant))


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
    model = Transformer(**SIZES, tie_embeddings=ties)
    tables = (model.source_embedding, model.embedding, model.projection)
    assert tuple(table.name for table in tables) == names
    assert len({id(table) for table in tables}) == len(set(names))
    alone = LanguageModel(**SIZES, tie_embeddings=ties)
    assert (alone.embedding.name, alone.projection.name) == names[1:]
    assert len([w for w in alone.weights if w.shape == (V, 8)]) == len(set(names[1:]))


def test_each_table_is_used_where_it_belongs():
    transformer = Transformer(**SIZES, tie_embeddings="none", positions="none")
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
        Transformer(**{**SIZES, "vocabulary_size": size}, tie_embeddings="none") for size in (3, 4)
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
    transformer = Transformer(**SIZES, dropout=0.3, **rates)
    rates = {}
    for layer in transformer._flatten_layers():
        if isinstance(layer, Dropout) and layer.rate:
            rates.setdefault((layer.name, layer.rate), []).append(layer)
    expected = {("weights_dropout", 0.25): 3, ("inner_dropout", 0.5): 2, ("whole_tokens", 0.2): 1}
    # Section 5.4: on the sums of embeddings and positions, and on each sublayer's output.
    expected |= {("sum_dropout", 0.3): 1, ("sublayer_dropout", 0.3): 2 + 3}
    assert {key: len(layers) for key, layers in rates.items()} == expected
    # A dropout of 0 has no random state.
    without = Transformer(**SIZES, dropout=0.0)
    assert not any("seed" in variable.path for variable in without.variables)
    batch = sentences(3)
    plain = np.array(transformer(batch))
    for active in rates:
        for key, layers in rates.items():
            for layer in layers:
                layer.rate = key[1] if key == active else 0.0
        assert np.abs(transformer(batch, training=True) - plain).max() > 0.01
    np.testing.assert_array_equal(transformer(batch), plain)
