"""Encoders read texts with labels, texts with tagged words, and texts with hidden pieces."""

import collections
import functools
import itertools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import hidden_pieces, labelled_texts, texts
from pipelines.batches.batching import evaluation_batches, training_batches
from pipelines.batches.hidden_pieces import Masking
from pipelines.batches.labelled_texts import closed, read
from pipelines.corpora.parallel_text import Corpus, Origin, ParallelText
from pipelines.special_ids import Marks
from pipelines.vocabularies import vocabulary
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.vocabularies.word_pieces import SPECIAL, WordPieces

TEXTS = ["turn on the lamp", "what is the time", "turn off the lamp in the kitchen"]


def test_a_batch_has_each_text_between_its_marks_beside_its_label():
    learned = vocabulary.learn(TEXTS, 300, tags=[vocabulary.MASK])
    ids = labelled_texts.tokenized(TEXTS, learned, 6)
    examples = labelled_texts.examples(ids, np.array([1, 0, 1]), learned)
    (tokens, segments), labels, weights = examples.batch(tf.constant([2, 0, 1], tf.int64), [6])
    marks = learned.marks
    plain = learned.tokenize(tf.constant(TEXTS)).to_list()
    expected = [[marks.first, *text[:-1][:5], marks.last] for text in plain]
    rows = [[number for number in row if number] for row in tokens.numpy().tolist()]
    assert rows == [expected[number] for number in (2, 0, 1)]
    assert not segments.numpy().any()
    assert (labels.numpy().tolist(), weights.numpy().tolist()) == ([1, 1, 0], [1.0] * 3)


def test_a_label_that_training_lacks_is_refused_with_its_line():
    text = ParallelText(TEXTS, TEXTS, (Origin("test.b", [1, 5, 6]),))
    place = functools.partial(text.place, side="")
    assert labelled_texts.numbers_of(["b", "a"], ["a", "b"], place).tolist() == [1, 0]
    message = r"seen in training, where 2 are\. Received: test\.b, line 5 has 'c' and 1 more\. Add"
    with pytest.raises(ValueError, match=message):
        labelled_texts.numbers_of(["a", "c", "d"], ["a", "b"], place)


TAGGED = ["turn on the lamp", "what is the time", "turn off the lamp in the living room"]
TAGS = ["O O O B-name", "O O O O", "O O O B-name O O B-area I-area"]
KNOWN = ["B-area", "B-name", "I-area", "O"]
WITHOUT_WIDTH = "\u200b"


@pytest.fixture(scope="module")
def learned():
    return vocabulary.learn(TAGGED, 300, tags=[vocabulary.MASK])


@pytest.fixture(scope="module")
def word_pieces():
    letters = [chr(number) for number in range(97, 123)]
    return WordPieces([*SPECIAL, *letters, *(f"##{letter}" for letter in letters), ".", "the"])


@pytest.fixture(scope="module", params=["learned", "word_pieces"])
def any_vocabulary(request):
    return request.getfixturevalue(request.param)


ANY_WORDS = st.lists(st.text(f"abthe.{WITHOUT_WIDTH}", min_size=1, max_size=5), max_size=4)


@hypothesis.settings(max_examples=30)
@hypothesis.given(st.lists(ANY_WORDS.map("  ".join), min_size=1, max_size=4))
@hypothesis.example([f"the {WITHOUT_WIDTH}  lamp", ""])
def test_word_by_word_the_pieces_are_those_of_the_text(any_vocabulary, texts):
    cut = labelled_texts.in_words(tf.constant(texts), any_vocabulary)
    plain = any_vocabulary.tokenize(tf.constant(texts)).to_list()
    assert cut.ids.to_list() == plain
    words = [word for text in texts for word in text.split()]
    alone = iter(any_vocabulary.tokenize(tf.constant(words, tf.string)).to_list())
    for text, places, row in zip(texts, cut.places.to_list(), plain, strict=True):
        end = 0
        for _, place in zip(text.split(), places, strict=True):
            begin = end
            *pieces, _ = next(alone)
            end += len(pieces)
            assert row[begin:end] == pieces
            assert place == (begin if pieces else labelled_texts.NOWHERE)
        assert end == len(row) - 1


@pytest.mark.parametrize("longest", [7, 50])
def test_a_batch_has_each_tag_at_the_first_piece_of_its_word(any_vocabulary, longest):
    texts = [*TAGGED, f"the {WITHOUT_WIDTH} lamp"]
    tags = [*TAGS, "O B-area B-name"]
    examples = labelled_texts.tagged_examples(texts, tags, KNOWN, any_vocabulary, longest, str)
    rows = tf.range(len(texts), dtype=tf.int64)
    (tokens, segments), *numbers_and_weights = examples.batch(rows, [longest] * 2)
    assert not segments.numpy().any()
    marks = any_vocabulary.marks
    cut = labelled_texts.in_words(tf.constant(texts), any_vocabulary)
    for row, numbers, weights, ids, places, text_tags in zip(
        *map(np.asarray, (tokens, *numbers_and_weights)),
        *(cut.ids.to_list(), cut.places.to_list(), map(str.split, tags)),
        strict=True,
    ):
        expected_row = [marks.first, *ids[:-1][: longest - 1], marks.last]
        assert row.tolist() == expected_row + [0] * (len(row) - len(expected_row))
        expected = {
            place + 1: tag
            for place, tag in zip(places, text_tags, strict=True)
            if place != labelled_texts.NOWHERE and place < longest - 1
        }
        is_tagged = weights == 1
        assert {n: KNOWN[numbers[n]] for n in np.flatnonzero(is_tagged)} == expected
        assert not weights[~is_tagged].any()


def test_many_texts_are_tagged_in_parts_as_they_are_at_once(learned, monkeypatch):
    def flats():
        columns = labelled_texts.tagged_examples(TAGGED, TAGS, KNOWN, learned, 50, str).ragged
        return {name: ids.flat.tolist() for name, ids in columns.items()}

    whole = flats()
    monkeypatch.setattr("pipelines.vocabularies.token_ids.LINES_A_CALL", 2)
    assert flats() == whole


def test_wrong_tags_are_refused_with_their_text(learned):
    def examples_of(texts, tags):
        return labelled_texts.tagged_examples(texts, tags, KNOWN, learned, 50, "text {}".format)

    with pytest.raises(ValueError, match=r"text 1 has 1 words, 'b', and 2 tags"):
        examples_of(["a", "b"], ["O", "O O"])
    with pytest.raises(ValueError, match=r"Received: text 1 has 'B-color'\. Add"):
        examples_of(["a", "b"], ["O", "B-color"])


def test_words_are_counted_as_the_graph_cuts_them():
    # As in `in_words`, a no-break space does not separate words.
    labelled_texts.check_tags(["lampe\u00a0!"], ["O"], KNOWN, str)
    assert len(tf.strings.split("lampe\u00a0!")) == 1
    with pytest.raises(ValueError, match="has 1 words"):
        labelled_texts.check_tags(["lampe\u00a0!"], ["O O"], KNOWN, str)


def corpus_of(text):
    held_out = ParallelText(["a"], ["O"])
    return Corpus("text_files", "en", "tags", text, held_out, held_out, dropped={"empty": 2})


def test_a_text_with_unequal_words_and_tags_is_dropped_or_refused_with_its_line():
    origin = Origin("train.tags", [1, 3, 51])
    text = ParallelText(["a b", "c d", "e f"], ["O O", "B-x O", "O O O"], (origin,))
    corpus = labelled_texts.without_unequal(corpus_of(text))
    assert corpus.train == ParallelText(["a b", "c d"], ["O O", "B-x O"])
    assert corpus.train.place(1, "") == "train.tags, line 3"
    description = "2 empty, 1 with unequal words and tags (first: train.tags, line 51)"
    assert corpus.dropped.describe() == description
    with pytest.raises(ValueError, match=r"train\.tags, line 51 has 2 words, 'e f', and 3 tags"):
        labelled_texts.without_unequal(corpus_of(text), strict=True)
    # All of them: the files do not belong together.
    with pytest.raises(ValueError, match=r"train\.tags, line 51 has 2 words"):
        labelled_texts.without_unequal(corpus_of(text.where([False, False, True])))


# Hidden pieces: their numbers and shares, which pieces are never hidden, and that each epoch hides
# other ones.
FIRST, LAST, MASK, SPACE = 2, 3, 4, 5
SIZE = 105
MARKS = Marks(FIRST, LAST, MASK, "<mask>", np.arange(5, SIZE), SPACE)
LENGTHS = np.arange(1, 61)
LONG_TEXTS = TokenIds.of_lengths(
    np.concatenate([[*np.arange(6, 6 + n - 1), LAST] for n in LENGTHS]).astype(np.uint16), LENGTHS
)


def masked(lengths, seed=1, share=0.15):
    rows = tf.ragged.constant([[FIRST, *range(6, 6 + length), LAST] for length in lengths])
    tokens = rows.to_tensor().numpy()
    keys = tf.constant(np.random.default_rng(seed).integers(0, 2**63, len(tokens)), tf.uint64)
    outputs = Masking(MARKS, SIZE, share)(tf.constant(tokens), keys)
    return tokens, *(part.numpy() for part in outputs)


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


def test_eight_of_ten_guesses_are_hidden_and_one_is_a_random_piece():
    _, hidden, places, pieces, weights = masked([40] * 4000)
    shown = np.take_along_axis(hidden, places, axis=1)[weights > 0]
    truth = pieces[weights > 0]
    count = len(truth)
    assert count == 24000
    replaced = shown[(shown != MASK) & (shown != truth)]
    # One of the 100 random pieces is the truth. The bound is 5 standard deviations of a binomial.
    for number, share in [((shown == MASK).sum(), 0.8), (len(replaced), 0.099)]:
        assert abs(number / count - share) < 5 * (share * (1 - share) / count) ** 0.5
    counts = np.bincount(replaced, minlength=SIZE)
    assert counts[:5].sum() == 0
    assert counts[5:].min() > 0
    # Each place is chosen as often as any other.
    chosen = np.bincount(places[weights > 0], minlength=42)[1:41]
    assert np.abs(chosen / chosen.mean() - 1).max() < 5 / chosen.mean() ** 0.5


def test_each_epoch_hides_other_pieces():
    def hidden_by_length(seed, count):
        examples = hidden_pieces.examples(LONG_TEXTS, MARKS, Masking(MARKS, SIZE), seed)
        rows_by_length = collections.defaultdict(set)
        stream = training_batches(examples, 600, 1).arrays()
        for (tokens, *_), _, _ in itertools.islice(stream, count):
            for row in tokens:
                rows_by_length[(row != 0).sum()].add(tuple(row[row != 0]))
        return rows_by_length

    of_seed_7 = hidden_by_length(7, 9)
    assert max(map(len, of_seed_7.values())) > 1
    of_seed_8 = hidden_by_length(8, 1)
    assert any(of_seed_8[length] - of_seed_7[length] for length in of_seed_8)


def test_evaluation_always_hides_the_same_pieces():
    examples = hidden_pieces.examples(LONG_TEXTS, MARKS, Masking(MARKS, SIZE), 7)
    twice = [list(evaluation_batches(examples, 300).as_numpy_iterator()) for _ in range(2)]
    flat = [np.concatenate([part.ravel() for part in tf.nest.flatten(run)]) for run in twice]
    np.testing.assert_array_equal(*flat)


def test_texts_are_cut_and_a_space_before_a_mask_is_left_out():
    ids = tf.ragged.constant([[SPACE, MASK, 9, LAST], [7, SPACE, MASK, LAST], [SPACE, 8, LAST]])
    assert closed(ids, MARKS, 9).to_list() == [[MASK, 9, LAST], [7, MASK, LAST], [SPACE, 8, LAST]]
    cut = read(ids, MARKS, 3).numpy().tolist()
    assert cut == [[FIRST, MASK, LAST], [FIRST, 7, LAST], [FIRST, SPACE, LAST]]


def test_a_vocabulary_without_the_mask_is_refused_with_the_remedy():
    lines = ["turn on the lamp in the kitchen", "what is the time"]
    with pytest.raises(ValueError, match=r"must have the piece <mask> .* --task=masking"):
        _ = vocabulary.learn(lines, 300).marks
    learned = vocabulary.learn(lines, 300, tags=[vocabulary.MASK])
    marks = learned.marks
    ids = closed(learned.tokenize(tf.constant(["turn on the <mask> lamp"])), marks, 99)
    assert (ids.values.numpy() == marks.mask).sum() == 1
    assert marks.space not in ids.values.numpy()
    # Ordinary texts of the corpus have no mark inside.
    plain = texts.tokenized(lines, learned, 99)
    assert not np.isin(plain.flat, [marks.mask, marks.first]).any()
