"""A head's importance is the derivative by what multiplies it, a removed head is one that gives
zeros, and links of heads are counted as the trees and the weights say.
"""

import keras
import numpy as np
import pytest

from benchmarks.paper.head_links import (
    Links,
    links_to_nouns,
    long_links,
    pronouns_with_nouns,
    strongest,
)
from pipelines.trees import parse

PAIR = ([5, 6, 7], [8, 9])
GONE = [("encoder", 0, 1), ("decoder", 1, 0), ("cross", 0, 0), ("cross", 0, 1)]


@pytest.fixture
def pruned_heads(benchmark_of):
    return benchmark_of("paper.pruned_heads", "--model=nowhere")


@pytest.fixture
def model():
    from keras_transformer import Transformer

    keras.utils.set_random_seed(1)
    sizes = {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2, "dropout": 0.0}
    model = Transformer(vocabulary_size=20, **sizes)
    logits_of(model)
    return model


def logits_of(model):
    source, target = PAIR
    return np.array(model((np.array([[*source, 3]]), np.array([[2, *target]]))), np.float64)


def loss_of(model):
    logits = logits_of(model)[0]
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return -logs[np.arange(3), [*PAIR[1], 3]].sum()


def test_importance_is_the_slope_of_the_loss(pruned_heads, model):
    found = pruned_heads.importances(model, [PAIR])
    attention = model.encoder.layers[0].self_attention
    kernel = attention.output_kernel
    whole = kernel.numpy()
    slopes = []
    for head in range(2):
        losses = []
        for mask in (0.99, 1.01):
            scaled = whole.copy()
            scaled[head * 8 : (head + 1) * 8] *= mask
            kernel.assign(scaled)
            losses.append(loss_of(model))
        kernel.assign(whole)
        slopes.append(abs(losses[1] - losses[0]) / 0.02)
    ours = [found["encoder", 0, head] for head in range(2)]
    np.testing.assert_allclose(ours, slopes / np.linalg.norm(slopes), rtol=0.01)


def test_a_removed_head_is_one_that_gives_zeros(pruned_heads, model):
    whole = logits_of(model)
    with pruned_heads.without(model, GONE):
        zeroed = logits_of(model)
        with pruned_heads.narrowed(model, GONE):
            assert model.encoder.layers[0].self_attention.num_heads == 1
            removed = logits_of(model)
    np.testing.assert_allclose(removed, zeroed, atol=1e-5)
    # Control: by removal alone, nothing of what is lost is left; and all heads are back.
    with pruned_heads.without(model, GONE[:2]):
        zeroed = logits_of(model)
    with pruned_heads.narrowed(model, GONE[:2]):
        np.testing.assert_allclose(logits_of(model), zeroed, atol=1e-5)
    assert np.abs(zeroed - whole).max() > 1e-3
    np.testing.assert_array_equal(logits_of(model), whole)


def test_a_pronoun_has_the_last_noun_of_the_nearest_phrase():
    tree = parse(
        "(S (PRP It) (NP (NP (DT the) (NN cat)) (PP (IN of) (NP (NN mice) (CD 3)))) (VBZ sees) "
        "(NP (PRP$ its) (NN tail)) (NP (CD 3)) (VBD ate) (NP (PRP it)))"
    )
    assert pronouns_with_nouns(tree) == [(7, 4), (11, 8)]


def test_heads_that_reach_back_are_told_from_one_that_finds():
    n = 12
    back = (np.arange(n) - 3) % n
    finds = np.where(np.arange(n) == 9, 2, back)
    weights = np.eye(n) + 0.5 * np.eye(n)[np.stack([back, finds])]
    found = [Links(strongest(weights)[None], [(9, 2)]), Links(strongest(weights)[None], [(8, 5)])]
    hits, expected, count = links_to_nouns(found)
    assert count == 2
    np.testing.assert_array_equal(hits, [[0.5, 1]])
    # Three back: all words from the fourth on, but for the ninth of the second head.
    np.testing.assert_allclose(expected, [[0.5, (8 / 9 + 1 / 5) / 2]])
    far, drawn = long_links(found, 5)
    np.testing.assert_allclose(far, [[3 / 12, 4 / 12]])
    places = np.arange(n)
    distances = np.abs(places[:, None] - places)
    np.testing.assert_allclose(drawn, (distances > 5).sum() / (n * (n - 1)))
