"""BPE-dropout: with 0 the plain pieces, with 1 characters, between as often as the algorithm says,
and always the same text.
"""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batching import training_batches
from pipelines.bpe_dropout import BpeDropout
from pipelines.pairs import TokenizedPairs
from pipelines.special_ids import EOS
from pipelines.token_ids import TokenIds
from pipelines.vocabulary import SPACE, learn

LINES = [
    "the house is big and the lamp is small",
    "das Haus ist groß und die Lampe ist klein",
    "turn off the lights in the kitchen",
    "schalte die Lichter in der Küche aus",
] * 3
TAG = "<2de>"
UNUSUAL = ["漢字 🙂 Größe", "<0x41> a\tb\x00", "", "½…", f"{TAG}the house {TAG}"]


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES, 340, [TAG])


@pytest.fixture(scope="module")
def ids(vocabulary):
    found = vocabulary.tokenize(LINES[:4] + UNUSUAL)
    return TokenIds.of_lengths(found.values.numpy(), found.row_lengths().numpy())


def cut(vocabulary, ids, probability, lap=0, rows=None, seed=1):
    """Sentences in new pieces, lists of ids; `lap` says how often they came before."""
    segmentation = BpeDropout(vocabulary, probability, seed)
    rows = tf.range(len(ids), dtype=tf.int64) if rows is None else tf.constant(rows, tf.int64)
    keys = segmentation.keys(tf.constant(0, tf.int64), rows + lap * 1000)
    padded = tf.function(segmentation.__call__)(ids.flat, ids.starts, rows, keys).numpy()
    assert padded.dtype == np.int32
    return [row[: len(row) - (row[::-1] != 0).argmax()].tolist() for row in padded]


def test_nothing_left_out_gives_the_plain_pieces(vocabulary, ids):
    assert cut(vocabulary, ids, 0.0) == [ids[row].tolist() for row in range(len(ids))]


def test_nearly_all_left_out_gives_characters(vocabulary, ids):
    for row, pieces in enumerate(cut(vocabulary, ids, 0.999999)[:4]):
        text = SPACE + LINES[row].replace(" ", SPACE)
        assert [vocabulary.pieces[number] for number in pieces] == [*text, "</s>"]


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_the_text_stays(vocabulary, ids, probability):
    pieces = cut(vocabulary, ids, probability)
    assert pieces != cut(vocabulary, ids, 0.0)
    plain = vocabulary.detokenize(
        tf.ragged.constant([ids[row].tolist() for row in range(len(ids))])
    )
    np.testing.assert_array_equal(vocabulary.detokenize(tf.ragged.constant(pieces)), plain)
    assert all(row[-1] == EOS for row in pieces)


def test_tags_and_bytes_stay_whole(vocabulary, ids):
    for row, pieces in enumerate(cut(vocabulary, ids, 0.5)):
        fixed = {number for number in ids[row] if number not in vocabulary.merges.values()}
        assert [number for number in pieces if number in fixed] == [
            number for number in ids[row] if number in fixed
        ]


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
    found = vocabulary.tokenize(["die"] * 10_000)
    many = TokenIds.of_lengths(found.values.numpy(), found.row_lengths().numpy())
    expected = ways((SPACE, "d", "i", "e"), vocabulary.merges, probability)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 3
    drawn = collections.Counter(
        tuple(vocabulary.pieces[number] for number in pieces[:-1])
        for pieces in cut(vocabulary, many, probability)
    )
    assert drawn.keys() <= expected.keys()
    for outcome, share in expected.items():
        assert drawn[outcome] / 10_000 == pytest.approx(share, abs=4 * (share / 10_000) ** 0.5)


def test_a_sentence_draws_the_same_whatever_stands_beside_it_and_anew_each_time(vocabulary, ids):
    together = cut(vocabulary, ids, 0.3)
    assert cut(vocabulary, ids, 0.3, rows=[2, 0]) == [together[2], together[0]]
    assert cut(vocabulary, ids, 0.3, lap=1) != together
    assert cut(vocabulary, ids, 0.3, seed=2) != together


def test_the_stream_is_the_same_wherever_it_is_entered_and_in_any_number_of_parts(vocabulary, ids):
    examples = TokenizedPairs(ids, ids).examples(BpeDropout(vocabulary, 0.3, seed=1))

    def rows(parts, start, count):
        """Of batches from one on."""
        batches = training_batches(examples, 60, seed=1, parts=parts).dataset(start).take(count)
        triples = batches.as_numpy_iterator()
        return [[*filter(None, row)] for _, labels, _ in triples for row in labels.tolist()]

    whole = rows(1, 0, 8)
    assert rows(2, 0, 16) == whole
    later = rows(1, 5, 3)
    assert later == whole[-len(later) :]
    cuts = collections.defaultdict(set)
    for row in whole:
        cuts[vocabulary.detokenize(tf.ragged.constant([row])).numpy()[0]].add(tuple(row))
    assert max(map(len, cuts.values())) > 1


def test_a_vocabulary_of_another_kind_is_refused():
    unigram = learn(LINES, 300, model_type="unigram")
    assert unigram.merges is None
    with pytest.raises(ValueError, match=r"^`bpe_dropout` needs a vocabulary of byte pairs\. "):
        BpeDropout(unigram, 0.1, 1)
