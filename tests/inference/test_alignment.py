"""From attention between pieces to links between words."""

import numpy as np
import pytest

from keras_transformer.inference.translator import link_words

SOURCE = ["▁the", "▁hou", "se", "▁burns", "</s>"]
TARGET = ["▁das", "▁Haus", "▁brenn", "t", "</s>"]
ATTENTION = np.array(
    [
        [0.6, 0.1, 0.1, 0.1, 0.1],
        [0.3, 0.2, 0.2, 0.1, 0.2],
        [0.1, 0.1, 0.1, 0.5, 0.2],
        [0.4, 0.1, 0.1, 0.3, 0.1],
        [0.0, 0.0, 0.0, 0.1, 0.9],
    ]
)


def test_a_word_s_pieces_add_up_on_both_sides():
    """Haus: 0.3 to "the", 0.4 to "house". brennt: 0.1 + 0.4 to "the", 0.5 + 0.3 to "burns"."""
    assert link_words(SOURCE, TARGET, ATTENTION) == [(0, 0), (1, 1), (2, 2)]


def test_what_is_attended_to_at_the_end_of_the_sentence_is_no_word():
    assert link_words(SOURCE, TARGET, np.tile([0.1, 0.0, 0.0, 0.2, 0.7], (5, 1))) == [
        (2, 0),
        (2, 1),
        (2, 2),
    ]


@pytest.mark.parametrize(
    ("source", "target"), [(["</s>"], TARGET), (SOURCE, ["</s>"]), (["</s>"], ["</s>"])]
)
def test_a_side_without_words_has_no_links(source, target):
    assert link_words(source, target, np.ones((len(target), len(source)))) == []


def test_a_first_piece_without_its_space_begins_a_word_all_the_same():
    assert link_words(["a", "b", "</s>"], ["c", "▁d", "</s>"], np.ones((3, 3))) == [(0, 0), (0, 1)]
