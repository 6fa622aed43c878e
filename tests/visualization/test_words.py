"""Pieces joined to words, and attention between them."""

import numpy as np
import pytest

from keras_transformer.visualization.words import between_words, shown, words_of

PIECES = ["▁the", "▁hou", "se", "▁burns", ".", "</s>"]


@pytest.mark.parametrize(
    ("pieces", "words", "numbers"),
    [
        (PIECES, ["the", "house", "burns.", "(end)"], [0, 1, 1, 2, 2, 3]),
        (["<s>", "das", "▁Haus"], ["(start)", "das", "Haus"], [0, 1, 2]),
        (["▁S", "<0xC3>", "<0xA9>", "</s>"], ["Sé", "(end)"], [0, 0, 0, 1]),
        (["▁", "▁a"], ["▁", "a"], [0, 1]),
        (["</s>"], ["(end)"], [0]),
    ],
)
def test_pieces_make_words(pieces, words, numbers):
    assert words_of(pieces) == (words, numbers)


def test_half_a_letter_is_shown_as_such():
    assert shown("▁a<0xC3>") == "a\ufffd"


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


def test_pieces_that_are_words_stay_as_they_are():
    attention = np.random.default_rng(2).dirichlet(np.ones(4), size=3)
    np.testing.assert_allclose(between_words(attention, range(3), range(4)), attention)
    # A control.
    assert not np.allclose(between_words(attention, range(3), [1, 0, 2, 3]), attention)


def test_word_pieces_of_bert_are_joined():
    words, numbers = words_of(["[CLS]", "turn", "off", "the", "lamp", "##s", ".", "[SEP]"])
    assert words == ["(start)", "turn", "off", "the", "lamps", ".", "(end)"]
    assert numbers == [0, 1, 2, 3, 4, 4, 5, 6]
