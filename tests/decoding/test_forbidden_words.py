"""Forbidden words, from whatever pieces they are spelled, against Python's regular expressions."""

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
from pipelines.vocabularies.protected_spans import MARKS
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
    """Return the text of ids without SentencePiece; None if their bytes are not UTF-8."""
    spelled = b"".join(
        bytes([int(vocabulary.pieces[id_][3:5], 16)])
        if vocabulary.processor.is_byte(id_)
        else vocabulary.pieces[id_].replace("\u2581", " ").replace("<unk>", " \u2047 ").encode()
        for id_ in ids
        if not vocabulary.processor.is_control(id_)
    )
    try:
        return spelled.decode()
    except UnicodeDecodeError:
        return None


def barred(forbidden, ids, in_numpy=False):
    history = np.array(ids, np.int32).reshape(1, -1)
    is_barred = forbidden.bars(history)
    if not in_numpy:
        in_tensorflow = np.isneginf(forbidden(tf.constant(history)).numpy())
        np.testing.assert_array_equal(in_tensorflow, is_barred)
    return is_barred[0]


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(0, 12))
def test_a_piece_is_barred_if_it_completes_a_word(vocabulary, forbidden, generator, length):
    """The automaton bars a piece if a regular expression finds a word in the text with it."""
    pattern = expression(WORDS)
    preferred = [id_ for word in WORDS for id_ in vocabulary.processor.encode(word)]
    preferred += [vocabulary.pieces.index(piece) for piece in ("\u2581", *"abcthe")]
    ids = []
    for _ in range(length):
        allowed = np.flatnonzero(~barred(forbidden, ids, in_numpy=True))
        likely = [id_ for id_ in preferred if id_ in allowed]
        ids.append(int(generator.choice(likely if generator.random() < 0.8 else list(allowed))))
    is_barred = barred(forbidden, ids)
    for piece in range(vocabulary.size):
        text = written(vocabulary, [*ids, piece])
        if text is None or EOS in ids:
            continue
        in_text = bool(pattern.search(text))
        # The automaton takes bytes for no letters, so that it may bar words beside such letters.
        in_bytes = any(vocabulary.processor.is_byte(id_) for id_ in [*ids, piece])
        assert is_barred[piece] == in_text or (in_bytes and is_barred[piece]), text


def test_the_number_of_a_mark_is_no_word():
    """Otherwise a text with a protected span would have no translation."""
    vocabulary = learn(LINES, 331, MARKS[:1])
    is_barred = barred(ForbiddenWords(["1"], vocabulary.spelled), [])
    assert is_barred[vocabulary.pieces.index("<0x31>")]
    assert not is_barred[vocabulary.pieces.index(MARKS[0])]


@pytest.mark.parametrize(
    ("pieces", "text", "is_barred"),
    [
        (["o", "<s>", "ff"], "off", True),
        (["o", *["<s>"] * 40, "ff"], "off", True),
        (["s", "<unk>", "o", "ff"], "s \u2047 off", True),
        (["o", "<unk>", "ff"], "o \u2047 ff", False),
    ],
)
def test_a_word_is_that_of_the_text(vocabulary, forbidden, pieces, text, is_barred):
    """Control pieces write nothing, and <unk> writes a sign."""
    ids = [vocabulary.pieces.index(piece) for piece in pieces]
    assert vocabulary.processor.decode(ids) == text
    assert barred(forbidden, ids[:-1])[ids[-1]] == is_barred


@pytest.mark.parametrize(
    ("word", "before", "allowed"),
    [("बत्त", " ", "बत्ती"), ("बत्ती", " ", "बत्तीस"), ("स", "बत्ती", "स"), ("café", " ", "cafés")],
)
def test_a_vowel_sign_belongs_to_its_word(word, before, allowed):
    pieces = [" ", "x", *dict.fromkeys(("बत्ती", "बत्तीस", "स", "cafés", word))]
    pieces = [normalize("NFD", piece) for piece in pieces]
    automaton = ForbiddenWords([normalize("NFD", word)], pieces)

    def is_barred(before, piece):
        before, piece = (pieces.index(normalize("NFD", text)) for text in (before, piece))
        return automaton.bars(np.array([[0, before]], np.int32))[0, piece]

    assert not is_barred(before, allowed)
    # The control.
    assert is_barred(" ", word)


def test_rows_have_histories_of_their_own(vocabulary, forbidden):
    """As the search calls it: in a graph, with many hypotheses, longer than any word."""
    generator = random.Random(3)
    rows = [[generator.randrange(4, vocabulary.size) for _ in range(40)] for _ in range(30)]
    together = tf.function(forbidden)(tf.constant(rows)).numpy()
    for row, bias in zip(rows, together, strict=True):
        np.testing.assert_array_equal(np.isneginf(bias), barred(forbidden, row))


def test_the_tables_of_a_phrase_that_repeats_are_made_once_for_pieces_that_begin_alike(monkeypatch):
    """They took minutes: a phrase of 400 words may have begun at 400 places at once."""
    characters = [*" word"]
    spellings = (itertools.product(characters, repeat=length) for length in range(1, 6))
    pieces = ["".join(spelling) for spelling in itertools.chain(*spellings)]
    calls = []
    grown = ForbiddenWords._grown
    monkeypatch.setattr(ForbiddenWords, "_grown", lambda *call: calls.append(1) or grown(*call))
    states = len(ForbiddenWords(["word " * 20], pieces).following)
    assert states > 90
    assert len(calls) <= (states + 2) * len(characters)


@pytest.mark.parametrize(
    ("words", "pieces", "most", "message"),
    [
        (["cat", " "], ["c"], 10**6, r"must be words or phrases, one a line\. "),
        (["cat"], ["c"] * 600, 1000, "has too many words for a vocabulary of 600 pieces, "),
        # A phrase that may have begun at as many places as it has letters.
        (["a " * 2000], ["a", " "], 100_000, ".*may have 100,000 cells.*: 3,999 letters in 1 "),
    ],
)
def test_no_words_and_too_many_are_refused(words, pieces, most, message, monkeypatch):
    monkeypatch.setattr("keras_transformer.decoding.forbidden_words.MOST_CELLS", most)
    with pytest.raises(ValueError, match=f"^`forbidden` {message}"):
        ForbiddenWords(words, pieces)


def test_a_long_word_that_begins_at_one_place_is_no_word_too_many(monkeypatch):
    monkeypatch.setattr("keras_transformer.decoding.forbidden_words.MOST_CELLS", 100_000)
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
