"""Whatever joins characters to pieces anew: the text stays, and what is drawn follows from the seed
and the place in the stream.
"""

import collections

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches.batching import training_batches
from pipelines.batches.pairs import TokenizedPairs
from pipelines.special_ids import EOS
from pipelines.vocabularies.bpe_dropout import BpeDropout
from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.vocabularies.vocabulary import learn

LINES = [
    "the house is big and the lamp is small",
    "das Haus ist groß und die Lampe ist klein",
    "turn off the lights in the kitchen",
    "schalte die Lichter in der Küche aus",
] * 3
TAG = "<2de>"
UNUSUAL = ["漢字 🙂 Größe", "<0x41> a\tb\x00", "", "½…", f"{TAG}the house {TAG}"]
# Kinds of vocabularies, with a segmentation of each and a share by which it cuts other pieces.
KINDS = {
    "bpe": (340, BpeDropout, 0.3),
    "unigram": (306, SubwordRegularization, 0.2),
}


def packed(vocabulary, lines):
    found = vocabulary.tokenize(lines)
    return TokenIds.of_lengths(found.values.numpy(), found.row_lengths().numpy())


def cut(segmentation, ids, lap=0, rows=None):
    """Sentences in new pieces, lists of ids; `lap` says how often they came before."""
    rows = tf.range(len(ids), dtype=tf.int64) if rows is None else tf.constant(rows, tf.int64)
    keys = segmentation.keys(tf.constant(0, tf.int64), rows + lap * 1000)
    drawn = tf.function(segmentation.__call__, autograph=False)
    padded = drawn(ids.flat, ids.starts, rows, keys).numpy()
    assert padded.dtype == np.int32
    return [row[: len(row) - (row[::-1] != 0).argmax()].tolist() for row in padded]


def plain(ids):
    return [ids[row].tolist() for row in range(len(ids))]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """A vocabulary, its ids of some sentences, and what makes a segmentation from a seed."""
    size, segmentation, share = KINDS[request.param]
    vocabulary = learn(LINES, size, [TAG], request.param)
    ids = packed(vocabulary, LINES[:4] + UNUSUAL)
    return vocabulary, ids, lambda seed=1: segmentation(vocabulary, share, seed)


def test_the_text_stays(kind):
    vocabulary, ids, make = kind
    pieces = cut(make(), ids)
    assert pieces != plain(ids)
    text = vocabulary.detokenize(tf.ragged.constant(plain(ids)))
    np.testing.assert_array_equal(vocabulary.detokenize(tf.ragged.constant(pieces)), text)
    assert all(row[-1] == EOS for row in pieces)


def test_tags_and_bytes_stay_whole(kind):
    vocabulary, ids, make = kind
    fixed = {
        number
        for number, piece in enumerate(vocabulary.pieces)
        if number <= EOS or piece == TAG or piece.startswith("<0x")
    }
    assert vocabulary.pieces.index(TAG) in ids.flat
    for row, pieces in enumerate(cut(make(), ids)):
        assert [number for number in pieces if number in fixed] == [
            number for number in ids[row].tolist() if number in fixed
        ]


def test_a_sentence_draws_the_same_whatever_stands_beside_it_and_anew_each_time(kind):
    _, ids, make = kind
    together = cut(make(), ids)
    assert cut(make(), ids, rows=[2, 0]) == [together[2], together[0]]
    assert cut(make(), ids, lap=1) != together
    assert cut(make(seed=2), ids) != together


@pytest.mark.parametrize(
    "kind", ["bpe", pytest.param("unigram", marks=pytest.mark.slow)], indirect=True
)
def test_the_stream_is_the_same_wherever_it_is_entered_and_in_any_number_of_parts(kind):
    vocabulary, ids, make = kind
    examples = TokenizedPairs(ids, ids).examples(dict.fromkeys(("source", "target"), make()))

    def rows(parts, start, count):
        """Of batches from one on."""
        batches = training_batches(examples, 60, seed=1, parts=parts).dataset(start).take(count)
        triples = batches.as_numpy_iterator()
        return [[*filter(None, row)] for _, labels, _ in triples for row in labels.tolist()]

    whole = rows(1, 0, 8)
    later = rows(2, 10, 6)
    assert 0 < len(later) < len(whole)
    assert later == whole[-len(later) :]
    cuts = collections.defaultdict(set)
    for row in whole:
        cuts[vocabulary.detokenize(tf.ragged.constant([row])).numpy()[0]].add(tuple(row))
    assert max(map(len, cuts.values())) > 1
