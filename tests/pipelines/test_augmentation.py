"""Text as people type it: slips come at the given rates, and never in a protected span or a tag."""

import collections
import functools

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs, token_ids
from pipelines.vocabularies import learn
from pipelines.vocabularies.augmentation import AugmentedText, keys_beside
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.segmentation import BpeDropout

LINES = ["turn off the lights, please!", "das Haus ist groß: die Lampe ist klein."] * 3
TAG = "<2de>"
MARKED = f"{TAG}turn ⟦1⟧ off ⟦12⟧, please!"
COUNT = 2000


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES, LINES, "joint", 400, [TAG], "bpe", ProtectedSpans(("tags",)))


@functools.cache
def compiled(vocabulary, is_source, rates):
    """A graph that types any number of texts."""
    augmented = AugmentedText(vocabulary, dict(rates), 3, 1000, is_source)

    def typed_once(texts):
        rows = tf.range(tf.size(texts, tf.int64))
        return augmented.changed(texts, augmented.keys(tf.constant(0, tf.int64), rows))

    return tf.function(typed_once, [tf.TensorSpec([None], tf.string)], autograph=False)


def typed(vocabulary, lines, is_source=True, **rates):
    """The lines, each typed once."""
    texts = compiled(vocabulary, is_source, tuple(rates.items()))(tf.constant(lines))
    return [text.decode() for text in texts.numpy()]


def kinds_of_slips(word, written):
    """The kinds of slips of which one alone makes the written word, in Python."""
    kinds = set()
    for i in range(1, len(word)):
        if written == word[:i] + word[i + 1 :]:
            kinds.add("missed")
        if written == word[: i + 1] + word[i:]:
            kinds.add("doubled")
        if i + 1 < len(word) and written == word[:i] + word[i + 1] + word[i] + word[i + 2 :]:
            kinds.add("swapped")
        if len(written) == len(word) and written in {
            word[:i] + key + word[i + 1 :] for key in keys_beside()[ord(word[i])]
        }:
            kinds.add("beside")
    return kinds


def test_slips_come_as_often_as_asked_and_are_of_four_kinds(vocabulary):
    assert set(keys_beside()[ord("g")]) == {"f", "h", "t", "y", "v", "b"}
    assert set(keys_beside()[ord("Q")]) <= {"W", "A"}
    assert set(keys_beside()[ord("?")]) == {"?"}
    written = typed(vocabulary, ["kitchen"] * COUNT, typos=0.05)
    mistyped = [text for text in written if text != "kitchen"]
    # Six letters may be mistyped, the last not swapped, and no two in a row.
    assert 0.23 < len(mistyped) / COUNT < 0.29
    kinds = collections.Counter()
    for text in mistyped:
        kinds.update(kinds_of_slips("kitchen", text))
    assert {"missed", "doubled", "swapped", "beside"} == set(kinds)
    assert min(kinds.values()) > 0.15 * len(mistyped)
    # Nearly all have one slip alone.
    single = sum(bool(kinds_of_slips("kitchen", text)) for text in mistyped)
    assert single > 0.85 * len(mistyped)


def test_case_is_changed_of_both_sides_alike(vocabulary):
    lines = ["Die Lampe ist groß"] * COUNT
    sources = typed(vocabulary, lines, case=0.3)
    targets = typed(vocabulary, lines, case=0.3, is_source=False)
    counts = collections.Counter(sources)
    capitals = tf.strings.upper(lines[0], "utf-8").numpy().decode()
    assert set(counts) == {lines[0], "die lampe ist groß", "Die Lampe Ist Groß", capitals}
    assert 0.67 < counts["Die Lampe ist groß"] / COUNT < 0.73
    for source, target in zip(sources, targets, strict=True):
        assert target == (source if source.startswith("DIE") else "Die Lampe ist groß")


def test_punctuation_is_missing_or_doubled(vocabulary):
    counts = collections.Counter(typed(vocabulary, ["Stop! 3.5"] * COUNT, punctuation=0.2))
    assert set(counts) == {"Stop! 3.5", "Stop 3.5", "Stop!! 3.5"}
    assert 0.07 < counts["Stop 3.5"] / COUNT < 0.13
    assert 0.77 < counts["Stop! 3.5"] / COUNT < 0.83


def test_spans_and_tags_stay(vocabulary):
    rates = {"case": 1.0, "typos": 0.5, "punctuation": 0.5}
    written = typed(vocabulary, [MARKED] * 200, **rates)
    assert len(set(written)) > 100
    for text in written:
        assert text.startswith(TAG)
        assert text.count("⟦1⟧") == text.count("⟦12⟧") == 1


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30), max_size=4))
def test_any_text_is_typed_and_none_is_lost(vocabulary, lines):
    lines = [*lines, "a"]
    assert typed(vocabulary, lines) == lines
    written = typed(vocabulary, lines, case=1.0, typos=0.9, punctuation=0.9)
    for line, text in zip(lines, written, strict=True):
        # Letters that begin a word always stay.
        assert bool(text) == bool(line)
        assert len(text) <= 2 * len(line) + 1


def batches(vocabulary, **more):
    rates = {"case": 0.5, "typos": 0.05}
    ids = token_ids(LINES, vocabulary)
    typed = AugmentedText(vocabulary, rates, 3, 1000, **more)
    examples = TokenizedPairs(ids, ids).examples({"source": typed})
    return training_batches(examples, 40, seed=5).dataset().as_numpy_iterator()


def test_augmented_text_is_cut_by_the_segmentation_too(vocabulary):
    (plain, _), *_ = next(batches(vocabulary))
    dropout = BpeDropout(vocabulary, 0.5, 3)
    (cut, _), *_ = next(batches(vocabulary, segmentation=dropout))
    before, after = (vocabulary.detokenize(tf.constant(ids)).numpy() for ids in (plain, cut))
    assert before.tolist() == after.tolist()
    assert cut.shape[1] > plain.shape[1]


def test_a_share_of_the_sentences_changes_on_both_sides_at_once(vocabulary):
    lines = ["Turn off the lights."] * 400
    ids = token_ids(lines, vocabulary)
    rows = tf.range(len(ids), dtype=tf.int64)

    def is_changed(is_source, share):
        rates = {"case": 1.0, "typos": 0.5}
        augmented = AugmentedText(vocabulary, rates, 3, 1000, is_source, share=share)
        keys = augmented.keys(tf.constant(0, tf.int64), rows)
        texts = vocabulary.detokenize(augmented(ids.flat, ids.starts, rows, keys)).numpy()
        return texts != lines[0].encode()

    sources, targets = is_changed(True, 0.25), is_changed(False, 0.25)
    assert 0.15 < sources.mean() < 0.35
    assert targets.any()
    assert not targets[~sources].any()
    assert not is_changed(True, 0.0).any()
    assert is_changed(True, 1.0).all()  # a control


def test_a_sentence_that_would_become_too_long_is_not_augmented(vocabulary):
    ids = token_ids(LINES, vocabulary)
    augmented = AugmentedText(vocabulary, {"case": 1.0}, 3, int(ids.lengths.max()))
    rows = tf.range(len(ids), dtype=tf.int64)
    keys = augmented.keys(tf.constant(0, tf.int64), rows)
    padded = augmented(tf.constant(ids.flat), tf.constant(ids.starts), rows, keys)
    assert padded.shape[1] <= ids.lengths.max()
    unlimited = AugmentedText(vocabulary, {"case": 1.0}, 3, 1000)  # the control
    assert unlimited(ids.flat, ids.starts, rows, keys).shape[1] > ids.lengths.max()
