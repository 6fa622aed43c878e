"""Words that never come, however they are spelled, beside Python's regular expressions."""

import itertools
import random
import re
from unicodedata import normalize

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.remembered_options import options_of_run, remembered
from pipelines.special_ids import EOS
from pipelines.vocabularies.vocabulary import learn

LINES = [
    "turn off the cat and the cattle",
    "das Haus: ein Größe-Test, (ab) abab",
    "a bad ab, abba.",
] * 3
WORDS = ["cat", "ab", "Größe", "the cat", "off"]


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES, 330, [])


@pytest.fixture(scope="module")
def forbidden(vocabulary):
    return ForbiddenWords(WORDS, vocabulary.spelled)


def expression(words):
    both = {form for word in words for form in (word, word[0].upper() + word[1:])}
    return re.compile("|".join(rf"(?<![\w]){re.escape(word)}(?![\w])" for word in both))


def written(vocabulary, ids):
    """What ids spell, without SentencePiece; None if bytes do not make characters."""
    spelled = b"".join(
        bytes([int(vocabulary.pieces[one][3:5], 16)])
        if vocabulary.processor.is_byte(one)
        else vocabulary.pieces[one].replace("\u2581", " ").encode()
        for one in ids
        if not vocabulary.processor.is_control(one) and not vocabulary.processor.is_unknown(one)
    )
    try:
        return spelled.decode()
    except UnicodeDecodeError:
        return None


def barred(forbidden, ids):
    came = np.array(ids, np.int32).reshape(1, -1)
    found = np.isneginf(forbidden(tf.constant(came)).numpy())
    np.testing.assert_array_equal(forbidden.bars(came), found)
    return found[0]


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(0, 12))
def test_a_piece_is_barred_if_the_text_would_have_a_word(vocabulary, forbidden, drawn, length):
    """At each step: what the automaton bars is what an expression finds in the text."""
    found = expression(WORDS)
    likely = [one for word in WORDS for one in vocabulary.processor.encode(word)]
    likely += [vocabulary.pieces.index(one) for one in ("\u2581", *"abcthe")]
    ids = []
    for _ in range(length):
        options = np.flatnonzero(~barred(forbidden, ids))
        wanted = [one for one in likely if one in options]
        ids.append(
            drawn.choice(wanted) if drawn.random() < 0.8 else int(drawn.choice(list(options)))
        )
    is_barred = barred(forbidden, ids)
    for piece in range(vocabulary.size):
        text = written(vocabulary, [*ids, piece])
        if text is None or EOS in ids:
            continue
        is_found = bool(found.search(text))
        # What is spelled in bytes may be a letter, and is taken for none.
        in_bytes = any(vocabulary.processor.is_byte(one) for one in [*ids, piece])
        assert is_barred[piece] == is_found or (in_bytes and is_barred[piece]), text


def test_the_automaton_sees_words_that_one_of_another_boundary_would_not(vocabulary, forbidden):
    """The control: without what stands before a word, its letters are found within others."""
    spelled = [vocabulary.pieces.index(one) for one in ("\u2581", "c", "a")]
    t = vocabulary.pieces.index("t")
    assert barred(forbidden, spelled)[t]
    assert not barred(forbidden, [*spelled[:1], vocabulary.pieces.index("s"), *spelled[1:]])[t]


@pytest.mark.parametrize(
    ("word", "came", "allowed"),
    [("बत्त", " ", "बत्ती"), ("बत्ती", " ", "बत्तीस"), ("स", "बत्ती", "स"), ("café", " ", "cafés")],
)
def test_a_vowel_sign_belongs_to_its_word(word, came, allowed):
    pieces = [" ", "x", *dict.fromkeys(("बत्ती", "बत्तीस", "स", "cafés", word))]
    pieces = [normalize("NFD", piece) for piece in pieces]
    found = ForbiddenWords([normalize("NFD", word)], pieces)

    def is_barred(came, piece):
        came, piece = (pieces.index(normalize("NFD", one)) for one in (came, piece))
        return found.bars(np.array([[0, came]], np.int32))[0, piece]

    assert not is_barred(came, allowed)
    # The control.
    assert is_barred(" ", word)


def test_rows_have_histories_of_their_own(vocabulary, forbidden):
    """As the search calls it: in a graph, many hypotheses, longer than any word."""
    drawn = random.Random(3)
    rows = [[drawn.randrange(4, vocabulary.size) for _ in range(40)] for _ in range(30)]
    together = tf.function(forbidden)(tf.constant(rows)).numpy()
    for row, bias in zip(rows, together, strict=True):
        np.testing.assert_array_equal(np.isneginf(bias), barred(forbidden, row))


def test_no_words_and_too_many_are_refused(vocabulary, monkeypatch):
    with pytest.raises(ValueError, match=r"^`forbidden` must be words or phrases, one a line\. "):
        ForbiddenWords(["cat", " "], vocabulary.spelled)
    monkeypatch.setattr("keras_transformer.decoding.forbidden_words.MOST_CELLS", 1000)
    with pytest.raises(ValueError, match=r"^`forbidden` has too many words for a vocabulary of 3"):
        ForbiddenWords(["cat"], vocabulary.spelled)


def test_the_tables_of_a_phrase_that_repeats_are_made_once_for_pieces_that_begin_alike(monkeypatch):
    """They took minutes of the processor: a phrase of 400 words has begun at 400 places at once."""
    characters = [*" word"]
    pieces = ["".join(one) for n in range(1, 6) for one in itertools.product(characters, repeat=n)]
    calls = []
    kept = ForbiddenWords._grown
    monkeypatch.setattr(ForbiddenWords, "_grown", lambda *which: calls.append(1) or kept(*which))
    found = ForbiddenWords(["word " * 20], pieces)
    states = len(found.following)
    assert states > 90
    assert len(calls) <= (states + 2) * len(characters)


def test_a_phrase_that_has_begun_at_too_many_places_is_refused(monkeypatch):
    words = ["a " * 2000]
    monkeypatch.setattr("keras_transformer.decoding.forbidden_words.MOST_CELLS", 100_000)
    with pytest.raises(ValueError, match=r"may have 100,000 cells\. Received: 3,999 letters in 1 "):
        ForbiddenWords(words, ["a", " "])
    # The control: a word as long, which begins at one place.
    assert len(ForbiddenWords(["a" * 3999], ["a", " "]).following) > 3999


def test_a_run_remembers_the_words_and_not_the_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("cat\n\nthe cat\n", encoding="utf-8")
    options = DecodingOptions(forbidden=str(path), beam_size=2)
    assert options.forbidden_words == ("cat", "the cat")
    path.unlink()
    assert options_of_run({}, remembered(options)) == options
    assert options.greedy().forbidden_words == ("cat", "the cat")
    assert "forbidden_words" not in remembered(DecodingOptions())
