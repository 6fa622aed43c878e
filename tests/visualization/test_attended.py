"""What rows and columns of attention are called, and which weights can be drawn."""

import numpy as np
import pytest

from keras_transformer.layers import LinearHeads, LowRankHeads, MultiHeadAttention, SoftmaxHeads
from keras_transformer.visualization.attended import (
    Attended,
    between_words,
    require_shares,
    words_of,
)


def shares(*shape):
    return np.random.default_rng(1).dirichlet(np.ones(shape[-1]), size=shape[:-1])


@pytest.fixture
def attention():
    return {
        "source_pieces": ["▁hou", "se", "</s>"],
        "target_pieces": ["▁das", "▁Ha", "us", "</s>"],
        "encoder": shares(2, 4, 3, 3),
        "decoder": shares(2, 4, 4, 4),
        "cross": shares(2, 4, 4, 3),
    }


@pytest.mark.parametrize(
    ("stack", "by_pieces", "rows", "columns"),
    [
        ("encoder", False, ["house", "(end)"], ["house", "(end)"]),
        ("cross", False, ["das", "Haus", "(end)"], ["house", "(end)"]),
        ("decoder", False, ["das", "Haus", "(end)"], ["(start)", "das", "Haus"]),
        ("decoder", True, ["▁das", "▁Ha", "us", "(end)"], ["(start)", "▁das", "▁Ha", "us"]),
    ],
)
def test_rows_are_what_is_written_and_columns_what_is_read(
    attention, stack, by_pieces, rows, columns
):
    found = Attended.of(attention, stack, by_pieces)
    assert (found.rows, found.columns) == (rows, columns)
    assert found.weights.shape == (2, 4, len(rows), len(columns))
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1)


def test_without_a_stack_it_is_the_last_one(attention):
    assert Attended.of(attention, None).stack == "cross"
    del attention["cross"], attention["decoder"]
    assert Attended.of(attention, None).stack == "encoder"
    with pytest.raises(ValueError, match=r"Received: --stack=cross\. Try --stack=encoder\."):
        Attended.of(attention, "cross")


@pytest.mark.parametrize(
    ("heads", "has_shares"),
    [(SoftmaxHeads(), True), (LinearHeads(), True), (LowRankHeads(2, max_positions=8), False)],
)
def test_weights_that_are_no_shares_are_refused(heads, has_shares):
    """Linear attention's features are all positive, so that its weights are shares too."""
    x = np.random.default_rng(1).normal(size=(1, 5, 8)).astype("float32")
    layer = MultiHeadAttention(num_heads=2, d_model=8, heads=heads)
    layer.build(x.shape, x.shape, x.shape)
    _, weights = layer.with_attention(x, x, x)
    if has_shares:
        assert require_shares(np.asarray(weights), "encoder") is None
        return
    with pytest.raises(ValueError, match="self-attention of the encoder has no weights between"):
        require_shares(np.asarray(weights), "encoder")


@pytest.mark.parametrize(("layers", "number", "index"), [(6, None, 4), (1, None, 0), (6, 6, 5)])
def test_the_layer_is_the_last_but_one_unless_it_is_given(layers, number, index):
    assert Attended("cross", [], [], np.zeros((layers, 2, 1, 1))).layer(number) == index


def test_what_is_not_there_is_told_in_one_line():
    found = Attended("cross", [], [], np.zeros((3, 2, 1, 1)))
    assert found.heads([]) == [0, 1]
    assert found.heads(["2"]) == [1]
    with pytest.raises(ValueError, match=r"--layer must be in 1 to 3.* Received: --layer=4"):
        found.layer(4)
    for wrong in (["3"], ["0"], ["1", "x"]):
        with pytest.raises(ValueError, match="--heads must be numbers in 1 to 2, joined by commas"):
            found.heads(wrong)


def test_another_stack_is_advised_only_where_there_is_one(attention):
    attention["encoder"] = -attention["encoder"]
    with pytest.raises(ValueError, match=r"not sum to 1\. Try --stack=cross\.$"):
        Attended.of(attention, "encoder")
    del attention["cross"], attention["decoder"]
    with pytest.raises(ValueError, match=r"not sum to 1\.$"):
        Attended.of(attention, None)


PIECES = ["▁the", "▁hou", "se", "▁burns", ".", "</s>"]


@pytest.mark.parametrize(
    ("pieces", "words", "numbers"),
    [
        (PIECES, ["the", "house", "burns.", "(end)"], [0, 1, 1, 2, 2, 3]),
        (["<s>", "das", "▁Haus"], ["(start)", "das", "Haus"], [0, 1, 2]),
        (["▁S", "<0xC3>", "<0xA9>", "</s>"], ["Sé", "(end)"], [0, 0, 0, 1]),
        (["▁", "▁a"], ["▁", "a"], [0, 1]),
        (["</s>"], ["(end)"], [0]),
        (["▁a<0xC3>"], ["a\ufffd"], [0]),
        (
            ["[CLS]", "the", "lamp", "##s", ".", "[SEP]"],
            ["(start)", "the", "lamps", ".", "(end)"],
            [0, 1, 2, 2, 3, 4],
        ),
    ],
)
def test_pieces_make_words(pieces, words, numbers):
    assert words_of(pieces) == (words, numbers)


def test_a_word_gets_the_sum_and_gives_the_mean_of_its_pieces():
    random = np.random.default_rng(1)
    attention = random.dirichlet(np.ones(6), size=(2, 3, 5))
    rows, columns = ([0, 0, 1, 2, 2], [0, 1, 1, 2, 2, 3])
    found = between_words(attention, rows, columns)
    assert found.shape == (2, 3, 3, 4)
    for row in range(3):
        for column in range(4):
            of_row = [t for t, word in enumerate(rows) if word == row]
            of_column = [s for s, word in enumerate(columns) if word == column]
            sums = [attention[..., t, of_column].sum(axis=-1) for t in of_row]
            np.testing.assert_allclose(found[..., row, column], np.mean(sums, axis=0))
    np.testing.assert_allclose(found.sum(axis=-1), 1)
