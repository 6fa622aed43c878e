"""Hidden pieces: their numbers and shares, what is never hidden, and that they follow from the
place in the stream.
"""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import hidden_pieces, texts
from pipelines.batches.batching import evaluation_batches, training_batches
from pipelines.batches.hidden_pieces import Masking
from pipelines.batches.labelled_texts import closed, read
from pipelines.special_ids import Marks
from pipelines.vocabularies.token_ids import TokenIds

FIRST, LAST, MASK, SPACE = 2, 3, 4, 5
SIZE = 105
MARKS = Marks(FIRST, LAST, MASK, "<mask>", np.arange(5, SIZE), SPACE)
LENGTHS = np.arange(1, 61)
TEXTS = TokenIds.of_lengths(
    np.concatenate([[*np.arange(6, 6 + n - 1), LAST] for n in LENGTHS]).astype(np.uint16), LENGTHS
)


def rectangle(lengths):
    rows = [[FIRST, *range(6, 6 + length), LAST] for length in lengths]
    return np.array([row + [0] * (max(map(len, rows)) - len(row)) for row in rows], np.int32)


def masked(lengths, seed=1, share=0.15):
    tokens = rectangle(lengths)
    keys = tf.constant(np.random.default_rng(seed).integers(0, 2**63, len(tokens)), tf.uint64)
    found = Masking(MARKS, SIZE, share)(tf.constant(tokens), keys)
    return tokens, *(part.numpy() for part in found)


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_the_numbers_of_guesses_are_those_of_the_paper(share):
    tokens, hidden, places, pieces, weights = masked(range(1, 60), share=share)
    for row, length in enumerate(range(1, 60)):
        count = max(1, int(length * share + 0.5))
        assert weights[row].sum() == count
        chosen = places[row][weights[row] > 0]
        assert len(set(chosen.tolist())) == count
        assert ((chosen >= 1) & (chosen <= length)).all()
        assert pieces[row].tolist() == tokens[row, places[row]].tolist()
        untouched = np.setdiff1d(np.arange(tokens.shape[1]), chosen)
        assert hidden[row, untouched].tolist() == tokens[row, untouched].tolist()
    # A text without pieces has nothing to guess.
    tokens, hidden, _, _, weights = masked([0, 0], share=share)
    assert weights.sum() == 0
    assert hidden.tolist() == tokens.tolist()


def test_eight_of_ten_are_hidden_and_one_is_any_other_piece():
    _, hidden, places, pieces, weights = masked([40] * 4000)
    came = np.take_along_axis(hidden, places, axis=1)[weights > 0]
    truth = pieces[weights > 0]
    count = len(truth)
    assert count == 24000
    others = came[(came != MASK) & (came != truth)]
    # Of 100 pieces that are drawn, one is the truth. Five standard deviations of a binomial.
    for found, share in [((came == MASK).sum(), 0.8), (len(others), 0.099)]:
        assert abs(found / count - share) < 5 * (share * (1 - share) / count) ** 0.5
    counts = np.bincount(others, minlength=SIZE)
    assert counts[:5].sum() == 0
    assert counts[5:].min() > 0
    # Each place is chosen as often as any other.
    chosen = np.bincount(places[weights > 0], minlength=42)[1:41]
    assert np.abs(chosen / chosen.mean() - 1).max() < 5 / chosen.mean() ** 0.5


def test_what_is_drawn_follows_from_the_key_alone():
    lengths = [7, 30, 12]
    keys = tf.constant([11, 12, 13], tf.uint64)
    tokens = rectangle(lengths)
    whole = Masking(MARKS, SIZE)(tf.constant(tokens), keys)
    alone = Masking(MARKS, SIZE)(tf.constant(tokens[2:, :14]), keys[2:])
    assert whole.tokens[2, :14].numpy().tolist() == alone.tokens[0].numpy().tolist()
    other = Masking(MARKS, SIZE)(tf.constant(tokens), keys + 1)
    assert (other.tokens.numpy() != whole.tokens.numpy()).any()


def test_each_epoch_hides_other_pieces():
    def hidden_by_length(seed, count):
        examples = hidden_pieces.examples(TEXTS, MARKS, Masking(MARKS, SIZE), seed)
        found = collections.defaultdict(set)
        stream = training_batches(examples, 600, 1).arrays()
        for (tokens, *_), _, _ in itertools.islice(stream, count):
            for row in tokens:
                found[(row != 0).sum()].add(tuple(row[row != 0]))
        return found

    seen = hidden_by_length(7, 9)
    assert max(map(len, seen.values())) > 1
    another = hidden_by_length(8, 1)
    assert any(another[length] - seen[length] for length in another)


def test_what_is_measured_has_always_the_same_pieces_hidden():
    examples = hidden_pieces.examples(TEXTS, MARKS, Masking(MARKS, SIZE), 7)
    twice = [list(evaluation_batches(examples, 300).as_numpy_iterator()) for _ in range(2)]
    flat = [np.concatenate([part.ravel() for part in tf.nest.flatten(once)]) for once in twice]
    np.testing.assert_array_equal(*flat)


def test_texts_are_cut_and_a_space_before_a_mask_is_left_out():
    ids = tf.ragged.constant([[SPACE, MASK, 9, LAST], [7, SPACE, MASK, LAST], [SPACE, 8, LAST]])
    assert closed(ids, MARKS, 9).to_list() == [[MASK, 9, LAST], [7, MASK, LAST], [SPACE, 8, LAST]]
    cut = read(ids, MARKS, 3).numpy().tolist()
    assert cut == [[FIRST, MASK, LAST], [FIRST, 7, LAST], [FIRST, SPACE, LAST]]


def test_a_vocabulary_without_the_mask_is_refused_with_the_remedy():
    from pipelines.vocabularies import vocabulary

    lines = ["turn on the lamp in the kitchen", "what is the time"]
    with pytest.raises(ValueError, match=r"must have the piece <mask> .* --task=masking"):
        _ = vocabulary.learn(lines, 300).marks
    learned = vocabulary.learn(lines, 300, tags=[vocabulary.MASK])
    marks = learned.marks
    ids = closed(learned.tokenize(tf.constant(["turn on the <mask> lamp"])), marks, 99)
    assert (ids.values.numpy() == marks.mask).sum() == 1
    assert marks.space not in ids.values.numpy()
    # An ordinary text of the corpus has no mark inside.
    plain = texts.tokenized(lines, learned, 99)
    assert not np.isin(plain.flat, [marks.mask, marks.first]).any()
