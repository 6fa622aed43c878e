"""Random segmentations: each spells the text, and comes as often as its algorithm says."""

import collections
import functools
import itertools
import math

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from token_lists import ENGLISH, GERMAN, listed

from pipelines.batches.texts import token_ids
from pipelines.special_ids import EOS
from pipelines.vocabularies.segmentation import BpeDropout
from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.vocabulary import SPACE, learn

LINES = [line for pair in zip(ENGLISH, GERMAN, strict=True) for line in pair]
TAG = "<2de>"
UNUSUAL = ["漢字 🙂 Größe", "<0x41> a\tb\x00", "", "½…", f"{TAG}the house {TAG}"]
DRAWS = 10_000
# Kinds of vocabularies, with a segmentation of each and a share by which it cuts other pieces.
KINDS = {"bpe": (340, BpeDropout, 0.3), "unigram": (306, SubwordRegularization, 0.2)}


@functools.cache
def graph_of(segmentation):
    return tf.function(segmentation.__call__, autograph=False)


def cut(segmentation, ids, lap=0):
    """Sentences in new pieces, as lists of ids; `lap` counts how often they came before."""
    rows = tf.range(len(ids), dtype=tf.int64)
    keys = segmentation.keys(tf.constant(0, tf.int64), rows + lap * 1000)
    padded = graph_of(segmentation)(ids.flat, ids.starts, rows, keys).numpy()
    assert padded.dtype == np.int32
    return [row[: len(row) - (row[::-1] != 0).argmax()].tolist() for row in padded]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """A vocabulary, its ids of some sentences, and a segmentation of seed 1 and one of seed 2."""
    size, segmentation, share = KINDS[request.param]
    vocabulary = learn(LINES, size, [TAG], request.param)
    ids = token_ids(LINES[:4] + UNUSUAL, vocabulary)
    return vocabulary, ids, [segmentation(vocabulary, share, seed) for seed in (1, 2)]


def test_the_text_stays_and_tags_and_bytes_are_whole(kind):
    vocabulary, ids, [segmentation, _] = kind
    sampled = cut(segmentation, ids)
    assert sampled != listed(ids)
    text = vocabulary.detokenize(tf.ragged.constant(listed(ids)))
    np.testing.assert_array_equal(vocabulary.detokenize(tf.ragged.constant(sampled)), text)
    fixed = {
        number
        for number, piece in enumerate(vocabulary.pieces)
        if number <= EOS or piece == TAG or piece.startswith("<0x")
    }
    assert vocabulary.pieces.index(TAG) in ids.flat
    for plain, pieces in zip(listed(ids), sampled, strict=True):
        assert pieces[-1] == EOS
        assert [n for n in pieces if n in fixed] == [n for n in plain if n in fixed]


def test_a_sentence_is_cut_anew_each_time_and_by_another_seed(kind):
    _, ids, [segmentation, of_another_seed] = kind
    first = cut(segmentation, ids)
    assert cut(segmentation, ids, lap=1) != first
    assert cut(of_another_seed, ids) != first


@pytest.fixture(scope="module")
def byte_pairs():
    return learn(LINES, 340, [TAG])


def test_dropout_of_0_gives_the_plain_pieces_and_of_nearly_1_characters(byte_pairs):
    ids = token_ids(LINES[:4] + UNUSUAL, byte_pairs)
    assert cut(BpeDropout(byte_pairs, 0.0, 1), ids) == listed(ids)
    for row, pieces in enumerate(cut(BpeDropout(byte_pairs, 0.999999, 1), ids)[:4]):
        text = SPACE + LINES[row].replace(" ", SPACE)
        assert [byte_pairs.pieces[number] for number in pieces] == [*text, "</s>"]


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


def assert_as_often(segmentation, vocabulary, word, expected):
    """10,000 draws: each segmentation comes as often as expected, within 4 standard deviations."""
    many = token_ids([word] * DRAWS, vocabulary)
    counts = collections.Counter(
        tuple(vocabulary.pieces[number] for number in pieces[:-1])
        for pieces in cut(segmentation, many)
    )
    assert counts.keys() <= expected.keys()
    for pieces, share in expected.items():
        assert counts[pieces] / DRAWS == pytest.approx(share, abs=4 * (share / DRAWS) ** 0.5)


@pytest.mark.parametrize("probability", [0.1, 0.4])
def test_pieces_come_as_often_as_the_algorithm_says(byte_pairs, probability):
    expected = ways((SPACE, "d", "i", "e"), byte_pairs.merges, probability)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 3
    assert_as_often(BpeDropout(byte_pairs, probability, 1), byte_pairs, "die", expected)


REFUSED = {
    BpeDropout: ("merges", r"^`bpe_dropout` needs a vocabulary of byte pairs\. "),
    SubwordRegularization: (
        "log_probabilities",
        r"^`subword_regularization` needs a vocabulary of a uni.*=unigram",
    ),
}


@pytest.mark.parametrize(
    ("model_type", "segmentation"),
    [
        *(("unigram", BpeDropout), ("bpe", SubwordRegularization)),
        *(("word_piece", segmentation) for segmentation in REFUSED),
    ],
)
def test_a_segmentation_needs_its_kind_of_vocabulary(model_type, segmentation):
    lacking, message = REFUSED[segmentation]
    vocabulary = learn(LINES, 300, model_type=model_type)
    assert getattr(vocabulary, lacking) is None
    with pytest.raises(ValueError, match=message):
        segmentation(vocabulary, 0.2, 1)


# Words of few letters, in which many pieces overlap.
LETTERS = np.random.default_rng(1).choice(list("abc"), (60, 8))
WORDS = [" ".join("".join(row[:length]) for row in LETTERS for length in (3, 5, 8))]
WORD = "".join(LETTERS[0])
LARGE = 1000.0


@pytest.fixture(scope="module")
def unigram():
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
    """P(x)^alpha / Z of every way x to write the word."""
    log_probabilities = dict(segmentations(SPACE + WORD, weights))
    powers = {pieces: math.exp(alpha * weight) for pieces, weight in log_probabilities.items()}
    total = math.fsum(powers.values())
    return {pieces: power / total for pieces, power in powers.items()}


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5])
def test_each_segmentation_comes_as_often_as_its_probability_says(unigram, alpha):
    expected = probabilities(unigram.log_probabilities, alpha)
    assert len(expected) > 10
    assert_as_often(SubwordRegularization(unigram, alpha, 1), unigram, WORD, expected)


def test_a_large_alpha_gives_sentencepieces_own_pieces(unigram):
    ids = token_ids(LINES[:4] + WORDS + UNUSUAL, unigram)
    assert cut(SubwordRegularization(unigram, LARGE, 1), ids) == listed(ids)


def test_words_are_drawn_independently(unigram):
    """The same word twice in a sentence: its pairs of segmentations, against the product."""
    many = token_ids([f"{WORD} {WORD}"] * DRAWS, unigram)
    pieces = cut(SubwordRegularization(unigram, 0.2, 1), many)
    texts = ["".join(unigram.pieces[n] + "|" for n in row[:-1]) for row in pieces]
    pairs = np.array([text.split(SPACE)[1:] for text in texts])
    [best, _], *_ = collections.Counter(pairs[:, 0]).most_common(1)
    first, second = (pairs == best).T
    expected = first.mean() * second.mean()
    assert (first & second).mean() == pytest.approx(expected, abs=4 * (expected / DRAWS) ** 0.5)


def test_log_probabilities_are_sentencepieces_scores_of_text_alone(unigram):
    processor = sentencepiece.SentencePieceProcessor(model_proto=unigram.model)
    scores = unigram.log_probabilities
    assert len(scores) == unigram.size - 4 - 256 - 1
    for piece, score in scores.items():
        assert processor.get_score(processor.piece_to_id(piece)) == score
    assert not {TAG, "</s>", "<0x00>"} & scores.keys()
