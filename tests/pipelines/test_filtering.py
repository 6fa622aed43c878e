"""Filters: each reason holds exactly where its definition says, and a kept pair has none."""

import dataclasses
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.parallel_text import LONGEST_LINE
from pipelines.prepare.filtering import SHORT, Filters, is_written_in, scripts_of

for package in ("babel", "regex"):
    pytest.importorskip(package)

ALPHABETS = {"Latn": "abcxyzäßøąñ", "Cyrl": "абвгюяїђ", "Grek": "αβγδωϊ", "Hira": "あいうえお"}
ALPHABETS |= {"Kana": "アイウエオ", "Hani": "漢字東京語", "Hang": "한글말", "Arab": "ابتثج"}
NAMES = {"Latn": "LATIN", "Cyrl": "CYRILLIC", "Grek": "GREEK", "Hira": "HIRAGANA"}
NAMES |= {"Kana": "KATAKANA", "Hang": "HANGUL", "Arab": "ARABIC"}
OF_NO_SCRIPT = " .,!?-()1234567890٠١٢٣ー🙂"
TEXT = st.text("".join(ALPHABETS.values()) + OF_NO_SCRIPT, max_size=30)
SCRIPTS = st.lists(st.sampled_from(list(ALPHABETS)), min_size=1, max_size=3, unique=True).map(tuple)
FILTERS = st.builds(
    Filters,
    st.none() | st.floats(1, 5),
    st.booleans(),
    source_scripts=st.none() | SCRIPTS,
    target_scripts=st.none() | SCRIPTS,
)


def script(character):
    """The code of a letter's script, by the letter's name in Python's database of characters."""
    name = unicodedata.name(character)
    return next((code for code, beginning in NAMES.items() if name.startswith(beginning)), "Hani")


def share(scripts, text):
    codes = [script(char) for char in text if unicodedata.category(char)[0] == "L" and char != "ー"]
    return sum(code in scripts for code in codes) / len(codes) if codes else 1


@given(SCRIPTS, TEXT)
def test_half_of_the_letters_decide_what_a_text_is_written_in(scripts, text):
    assert is_written_in(scripts, text) == (share(scripts, text) >= 0.5)


@given(st.just(Filters()) | FILTERS, TEXT, TEXT)
def test_every_reason_holds_as_defined_and_a_kept_pair_has_none(filters, source, target):
    shorter, longer = sorted((len(source), len(target)))
    scripts = [(filters.source_scripts, source), (filters.target_scripts, target)]
    most = filters.max_length_ratio
    reasons = {
        "empty": not (source.strip() and target.strip()),
        "untranslated": filters.drop_untranslated and source == target,
        "length ratio": most is not None and longer > SHORT and longer / max(shorter, 1) > most,
        "other script": any(codes and share(codes, text) < 0.5 for codes, text in scripts),
    }
    reason = filters.reason_to_drop(source, target)
    assert reasons[reason] if reason else not any(reasons.values())
    # Pairs in the other direction are dropped alike.
    turned = {"source_scripts": filters.target_scripts, "target_scripts": filters.source_scripts}
    backward = dataclasses.replace(filters, **turned)
    assert backward.reason_to_drop(target, source) == reason


@pytest.mark.parametrize(
    ("ratio", "source", "target", "reason"),
    [
        (None, "a", "b" * LONGEST_LINE, None),
        (None, "a", "b" * (LONGEST_LINE + 1), "huge line"),
        # Short phrases may differ in length; the control has a character more.
        (3, "OK", "In Ordnung", None),
        (3, "OK", "In Ordnung.", "length ratio"),
    ],
    ids=["long", "huge", "short", "control"],
)
def test_a_huge_line_and_unequal_lengths_are_reasons(ratio, source, target, reason):
    assert Filters(max_length_ratio=ratio).reason_to_drop(source, target) == reason


@pytest.mark.parametrize("source", ["мир", "да", "abc", "мир мира мир"])
def test_a_tag_before_a_source_is_not_part_of_its_text(source):
    filters = Filters(3, True, ("Cyrl",), tags=("<2german>",))
    for target in ("мир", "In Ordnung."):
        reason = filters.reason_to_drop(source, target)
        assert filters.reason_to_drop(f"<2german> {source}", target) == reason


@pytest.mark.parametrize(
    ("language", "scripts"),
    [
        *((code, ("Latn",)) for code in ("de", "pt-BR", "sr-Latn", "eng", "sh")),
        *((code, ("Cyrl",)) for code in ("ru", "sr")),
        *((code, ("Han",)) for code in ("zh", "zh_TW", "zh-Hant-HK")),
        ("ja", ("Han", "Hiragana", "Katakana")),
        ("ko", ("Hangul", "Han")),
        ("hi", ("Deva",)),
        ("iw", ("Hebr",)),
    ],
)
def test_cldr_says_what_a_language_is_written_in(language, scripts, caplog):
    assert scripts_of(language) == scripts
    assert not caplog.records


@pytest.mark.parametrize("language", ["words", "xx", "english", "", "?", "de-"])
def test_an_unknown_language_is_not_filtered_and_warned_of_once(language, caplog):
    with caplog.at_level(logging.WARNING):
        assert scripts_of(language) is None
    assert [record.getMessage() for record in caplog.records] == [
        f"CLDR knows no script of language {language!r}: its sentences are not filtered by script."
    ]
    assert Filters(target_scripts=None).reason_to_drop("a", "я") is None
    assert Filters(target_scripts=("Latn",)).reason_to_drop("a", "я") == "other script"  # control


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ja", "東京タワーへ行きました。"),
        ("ko", "나는 한국어를 공부합니다."),
        ("zh", "我在学习中文。"),
        ("hi", "मैं हिन्दी सीख रहा हूँ।"),
        ("de", "Straße"),
    ],
)
def test_sentences_are_in_their_own_language_s_scripts_alone(language, text):
    assert is_written_in(scripts_of(language), text)
    assert not is_written_in(scripts_of("ru"), text)
