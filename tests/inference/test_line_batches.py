"""Lines to batches or to sentences, and back."""

import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.inference.line_batches import checked_lengths, join, split
from keras_transformer.inference.perplexity import in_words, rounded_perplexity
from keras_transformer.inference.translator import Translator


def letters(lines):
    return [len(line) for line in lines]


def test_pairs_are_batched_by_their_longer_side():
    translator = Translator.__new__(Translator)
    translator._model = types.SimpleNamespace(lengths=letters, target_lengths=letters)
    seen = []

    def ask(lines, targets):
        seen.append(targets)
        return lines

    assert translator._in_batches(ask, (10,), [*"abcd"], ["a", "a", "a" * 10, "a"]) == [*"abcd"]
    assert seen == [["a" * 10], ["a"] * 3]


def test_a_long_line_is_called_by_its_name():
    with pytest.raises(ValueError, match=r"^line 2 has 1,025 tokens.*--split_sentences"):
        checked_lengths(letters, ["a", "a" * 1025])
    with pytest.raises(ValueError, match=r"^target 1 has 1,025 tokens.* allowed\. Shorten it\.$"):
        checked_lengths(letters, ["a" * 1025], "target {}", "Shorten it.")
    assert checked_lengths(letters, ["a" * 1024]) == [1024]
    # Of one line the number says nothing: a stream knows a better one.
    with pytest.raises(ValueError, match=r"^the line has 1,025 tokens"):
        checked_lengths(letters, ["a" * 1025])


def test_a_long_prefix_is_called_a_prefix():
    translator = Translator.__new__(Translator)
    refused = types.SimpleNamespace(lengths=letters, target_lengths=letters)
    translator._model = types.SimpleNamespace(**vars(refused), translate_in_detail=None, score=None)
    with pytest.raises(ValueError, match=r"^of the prefixes, line 2 has 1,025 tokens"):
        translator.translate(["a", "b"], ["", "a" * 1025])
    # A control.
    with pytest.raises(ValueError, match=r"^of the targets, line 2 has 1,025 tokens"):
        translator.score(["a", "b"], ["", "a" * 1025])


def test_a_perplexity_beyond_all_numbers_is_none():
    assert rounded_perplexity(1.0) == 2.718
    assert rounded_perplexity(1420.0) is None
    assert (in_words(2.718), in_words(None)) == ("2.718", "beyond all numbers")


@pytest.mark.parametrize(
    ("language", "line", "sentences"),
    [
        (
            "en",
            "Dr. Smith left. He said: hello! It cost $3.50 today.",
            ["Dr. Smith left.", "He said: hello!", "It cost $3.50 today."],
        ),
        ("de", "Das ist z.B. gut. Am 3. Mai kam er.", ["Das ist z.B. gut.", "Am 3. Mai kam er."]),
        ("words", "One. Two.", ["One.", "Two."]),
        ("en", "no end", ["no end"]),
    ],
)
def test_a_line_is_cut_where_a_sentence_ends_and_nowhere_else(language, line, sentences):
    assert split([line], language) == (sentences, [len(sentences)])


def test_every_line_gets_its_sentences_back():
    sentences, counts = split(["One. Two.", "", "Three.", "  "], "en")
    assert counts == [2, 0, 1, 0]
    assert join([sentence.upper() for sentence in sentences], counts) == [
        "ONE. TWO.",
        "",
        "THREE.",
        "",
    ]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=60), max_size=6))
def test_no_character_but_white_space_is_lost(lines):
    sentences, counts = split(lines, "en")
    joined = join(sentences, counts)
    assert ["".join(line.split()) for line in joined] == ["".join(line.split()) for line in lines]


def test_a_tag_before_a_line_stands_before_each_of_its_sentences():
    lines = ["<2de> One. Two.", " <2fr>  Three.", "<2de>", "<no> One. Two.", "One. <2de> Two."]
    sentences, counts = split(lines, "en", {"<2de>", "<2fr>"}.__contains__)
    assert sentences == [
        *("<2de> One.", "<2de> Two.", "<2fr> Three.", "<2de>"),
        *("<no> One.", "Two.", "One.", "<2de> Two."),
    ]
    assert counts == [2, 1, 1, 2, 2]
    # A control: to a model without tags it is a word.
    assert split(lines[:1], "en") == (["<2de> One.", "Two."], [2])
