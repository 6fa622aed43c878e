"""BPE-dropout: with 0 the plain pieces, with 1 characters, between as often as the algorithm
says.
"""

import collections
import itertools

import pytest

from pipelines.vocabularies.bpe_dropout import BpeDropout
from pipelines.vocabularies.vocabulary import SPACE, learn
from tests.pipelines.test_segmentation import LINES, TAG, UNUSUAL, cut, packed, plain


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES, 340, [TAG])


@pytest.fixture(scope="module")
def ids(vocabulary):
    return packed(vocabulary, LINES[:4] + UNUSUAL)


def test_nothing_left_out_gives_the_plain_pieces(vocabulary, ids):
    assert cut(BpeDropout(vocabulary, 0.0, 1), ids) == plain(ids)


def test_nearly_all_left_out_gives_characters(vocabulary, ids):
    for row, pieces in enumerate(cut(BpeDropout(vocabulary, 0.999999, 1), ids)[:4]):
        text = SPACE + LINES[row].replace(" ", SPACE)
        assert [vocabulary.pieces[number] for number in pieces] == [*text, "</s>"]


def ways(symbols, merges, probability):
    """Every outcome of the algorithm on a word, with its probability: enumeration."""
    possible = sorted(
        (merges[left + right], place)
        for place, (left, right) in enumerate(itertools.pairwise(symbols))
        if left + right in merges
    )
    outcomes = collections.Counter()
    for rank, (_, place) in enumerate(possible):
        merged = (*symbols[:place], symbols[place] + symbols[place + 1], *symbols[place + 2 :])
        for outcome, share in ways(merged, merges, probability).items():
            outcomes[outcome] += probability**rank * (1 - probability) * share
    outcomes[symbols] += probability ** len(possible)
    return outcomes


@pytest.mark.parametrize("probability", [0.1, 0.4])
def test_pieces_come_as_often_as_the_algorithm_says(vocabulary, probability):
    """10,000 draws of one word, against all its outcomes."""
    expected = ways((SPACE, "d", "i", "e"), vocabulary.merges, probability)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 3
    many = packed(vocabulary, ["die"] * 10_000)
    drawn = collections.Counter(
        tuple(vocabulary.pieces[number] for number in pieces[:-1])
        for pieces in cut(BpeDropout(vocabulary, probability, 1), many)
    )
    assert drawn.keys() <= expected.keys()
    for outcome, share in expected.items():
        assert drawn[outcome] / 10_000 == pytest.approx(share, abs=4 * (share / 10_000) ** 0.5)


def test_a_vocabulary_of_another_kind_is_refused():
    unigram = learn(LINES, 300, model_type="unigram")
    assert unigram.merges is None
    with pytest.raises(ValueError, match=r"^`bpe_dropout` needs a vocabulary of byte pairs\. "):
        BpeDropout(unigram, 0.1, 1)
