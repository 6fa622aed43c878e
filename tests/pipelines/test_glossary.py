"""Terms that get the translations that somebody gives."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.glossary import Glossary, read_terms
from pipelines.vocabularies.protected_spans import KINDS, ProtectedSpans

ALL = ProtectedSpans(tuple(KINDS))
LEARNED = ProtectedSpans(tuple(KINDS), glossary_rate=0.1)
TERMS = {"light": "Leuchte", "light switch": "Lichtschalter", "ACME": "ACME", "C++": "C++"}


def marked(text, terms=None):
    return Glossary(TERMS if terms is None else terms, ALL).applied(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the light is on", "the ⟦Leuchte⟧ is on"),
        ("the light switch", "the ⟦Lichtschalter⟧"),
        ("Light on", "⟦Leuchte⟧ on"),
        ("lights, delight", "lights, delight"),
        ("light-light.", "⟦Leuchte⟧-⟦Leuchte⟧."),
        ("acme ACME", "acme ⟦ACME⟧"),
        ("C++ and C", "⟦C++⟧ and C"),
        ("{light} <b title='light'> light", "{light} <b title='light'> ⟦Leuchte⟧"),
        ("⟦light⟧ light", "⟦light⟧ ⟦Leuchte⟧"),
        ("", ""),
    ],
)
def test_terms_are_marked(text, expected):
    assert marked(text) == expected


def test_a_model_that_learned_it_reads_translations_behind_their_terms():
    glossary = Glossary(TERMS, LEARNED)
    assert glossary.applied("Light: the light switch, {light}") == (
        "⟪ Light⟹ Leuchte⟫: the⟪ light switch⟹ Lichtschalter⟫, {light}"
    )
    assert glossary.applied("⟦light⟧ no term") == "⟦light⟧ no term"


def test_the_case_of_the_first_letter_is_kept():
    assert marked("Dog and dog", {"dog": "hund"}) == "⟦Hund⟧ and ⟦hund⟧"
    assert marked("Öl öl", {"öl": "oil"}) == "⟦Oil⟧ ⟦oil⟧"


@pytest.mark.parametrize("given", ["NFC", "NFD"])
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_letters_with_accents_are_the_same_in_one_character_or_two(given, written):
    terms = {normalize(given, "café"): "Kaffeehaus", "cafe": "Kantine"}
    found = marked(normalize(written, "Café, un café, une caféine, CAFE, cafe"), terms)
    kept = normalize(written, "une caféine")
    assert found == f"⟦Kaffeehaus⟧, un ⟦Kaffeehaus⟧, {kept}, CAFE, ⟦Kantine⟧"
    assert marked("5 \u2126", {"\u2126": "Ohm"}) == "5 ⟦Ohm⟧"


def test_in_a_text_in_capitals_terms_are_in_capitals():
    terms = {"light": "Leuchte", "us": "uns", "Acme Hub": "Acme-Hub", "ON": "AN"}
    assert marked("ACME HUB: LIGHT {light}", terms) == "⟦ACME-HUB⟧: ⟦LEUCHTE⟧ {light}"
    assert marked("ON", terms) == "⟦AN⟧"
    assert marked("Bring the US LIGHT to us", terms) == "Bring the US LIGHT to ⟦uns⟧"


def test_without_terms_nothing_is_marked():
    assert marked("the light {x}", {}) == "the light {x}"


@given(st.text(max_size=60))
def test_any_text_is_kept_but_for_the_marks(text):
    found = marked(text, {"light": "light"})
    assert found.replace("⟦light⟧", "light").replace("⟦Light⟧", "Light") == text.replace(
        "⟦light⟧", "light"
    ).replace("⟦Light⟧", "Light")


@pytest.mark.parametrize(
    ("terms", "sense"), [({" ": "a"}, "empty"), ({"a": ""}, "empty"), ({"a": "⟦b⟧"}, "mark ⟦")]
)
def test_terms_that_cannot_be_are_refused(terms, sense):
    with pytest.raises(ValueError, match=sense):
        Glossary(terms, ALL)


def test_a_model_without_protected_spans_is_refused():
    with pytest.raises(ValueError, match="--protect"):
        Glossary(TERMS, None)


def test_a_file_has_two_columns(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("light\tLeuchte\nACME \t ACME\nlight\tLeuchte\n", encoding="utf-8")
    assert read_terms(path) == {"light": "Leuchte", "ACME": "ACME"}
    for text, sense in (
        ("a\tb\nlight\n", "line 2: .*a tab"),
        ("a\tb\tc\n", "line 1: .*a tab"),
        ("a\tb\na\tc\n", "line 2: .*another translation"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=sense):
            read_terms(path)
