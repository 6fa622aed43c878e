"""Subword regularization: with a large alpha SentencePiece's own segmentation, else each
segmentation as often as its probability says.
"""

import collections
import math

import numpy as np
import pytest
import sentencepiece

from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.vocabulary import SPACE, learn
from tests.pipelines.test_segmentation import LINES, TAG, UNUSUAL, cut, packed, plain

# Words of few letters, which many pieces overlap in.
LETTERS = np.random.default_rng(1).choice(list("abc"), (60, 8))
WORDS = [" ".join("".join(row[:length]) for row in LETTERS for length in (3, 5, 8))]
WORD = "".join(LETTERS[0])
DRAWS = 10_000
LARGE = 1000.0


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES + WORDS, 340, [TAG], "unigram")


def segmentations(text, weights):
    """Every way to write a text in pieces, with the sum of their weights: enumeration."""
    if not text:
        yield (), 0.0
    for end in range(1, len(text) + 1):
        if text[:end] in weights:
            for rest, weight in segmentations(text[end:], weights):
                yield (text[:end], *rest), weights[text[:end]] + weight


def probabilities(weights, alpha):
    """P(x)^alpha / Z of every way to write the word."""
    found = dict(segmentations(SPACE + WORD, weights))
    powers = {pieces: math.exp(alpha * weight) for pieces, weight in found.items()}
    total = math.fsum(powers.values())
    return {pieces: power / total for pieces, power in powers.items()}


def drawn_shares(vocabulary, alpha, seed=1):
    many = packed(vocabulary, [WORD] * DRAWS)
    counts = collections.Counter(
        tuple(vocabulary.pieces[number] for number in pieces[:-1])
        for pieces in cut(SubwordRegularization(vocabulary, alpha, seed), many)
    )
    return {pieces: count / DRAWS for pieces, count in counts.items()}


def is_near(shares, expected):
    """Within 4 standard deviations, each."""
    return shares.keys() <= expected.keys() and all(
        abs(shares.get(pieces, 0) - share) <= 4 * (share / DRAWS) ** 0.5
        for pieces, share in expected.items()
    )


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5])
def test_each_segmentation_comes_as_often_as_its_probability_says(vocabulary, alpha):
    expected = probabilities(vocabulary.log_probabilities, alpha)
    assert len(expected) > 10
    shares = drawn_shares(vocabulary, alpha)
    assert is_near(shares, expected)
    # The control: another alpha's shares are not these.
    assert not is_near(shares, probabilities(vocabulary.log_probabilities, alpha + 0.3))


def test_sentencepiece_draws_by_the_same_probabilities(vocabulary):
    """A second oracle, for the enumeration itself."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    sampling = {"enable_sampling": True, "alpha": 0.2, "nbest_size": -1, "out_type": str}
    counts = collections.Counter(tuple(processor.encode(WORD, **sampling)) for _ in range(DRAWS))
    shares = {pieces: count / DRAWS for pieces, count in counts.items()}
    assert is_near(shares, probabilities(vocabulary.log_probabilities, 0.2))


def test_a_large_alpha_gives_sentencepieces_own_pieces(vocabulary):
    ids = packed(vocabulary, LINES[:4] + WORDS + UNUSUAL)
    assert cut(SubwordRegularization(vocabulary, LARGE, 1), ids) == plain(ids)


def test_words_are_drawn_independently(vocabulary):
    """The same word twice in a sentence: its pairs of segmentations, against the product."""
    many = packed(vocabulary, [f"{WORD} {WORD}"] * DRAWS)
    pieces = cut(SubwordRegularization(vocabulary, 0.2, 1), many)
    texts = ["".join(vocabulary.pieces[n] + "|" for n in row[:-1]) for row in pieces]
    pairs = np.array([text.split(SPACE)[1:] for text in texts])
    [best, _], *_ = collections.Counter(pairs[:, 0]).most_common(1)
    first, second = (pairs == best).T
    expected = first.mean() * second.mean()
    assert (first & second).mean() == pytest.approx(expected, abs=4 * (expected / DRAWS) ** 0.5)


def test_log_probabilities_are_sentencepieces_scores_of_text_alone(vocabulary):
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    found = vocabulary.log_probabilities
    assert len(found) == vocabulary.size - 4 - 256 - 1
    assert all(processor.get_score(processor.piece_to_id(one)) == found[one] for one in found)
    assert not {TAG, "</s>", "<0x00>"} & found.keys()


def test_a_vocabulary_of_another_kind_is_refused():
    byte_pairs = learn(LINES, 300)
    assert byte_pairs.log_probabilities is None
    with pytest.raises(ValueError, match=r"^`subword_regularization` needs a vocabulary of a uni"):
        SubwordRegularization(byte_pairs, 0.2, 1)
