"""Lines to sentences and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.inference import long_text


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
    assert long_text.split([line], language) == (sentences, [len(sentences)])


def test_every_line_gets_its_sentences_back():
    sentences, counts = long_text.split(["One. Two.", "", "Three.", "  "], "en")
    assert counts == [2, 0, 1, 0]
    assert long_text.join([sentence.upper() for sentence in sentences], counts) == [
        "ONE. TWO.",
        "",
        "THREE.",
        "",
    ]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=60), max_size=6))
def test_no_character_but_white_space_is_lost(lines):
    sentences, counts = long_text.split(lines, "en")
    joined = long_text.join(sentences, counts)
    assert ["".join(line.split()) for line in joined] == ["".join(line.split()) for line in lines]


def test_a_tag_before_a_line_stands_before_each_of_its_sentences():
    lines = ["<2de> One. Two.", " <2fr>  Three.", "<2de>", "<no> One. Two.", "One. <2de> Two."]
    sentences, counts = long_text.split(lines, "en", {"<2de>", "<2fr>"}.__contains__)
    assert sentences == [
        *("<2de> One.", "<2de> Two.", "<2fr> Three.", "<2de>"),
        *("<no> One.", "Two.", "One.", "<2de> Two."),
    ]
    assert counts == [2, 1, 1, 2, 2]
    # A control: to a model without tags it is a word.
    assert long_text.split(lines[:1], "en") == (["<2de> One.", "Two."], [2])
