"""Home Assistant: which pairs are kept, which split they go to, and what the real wheel gives."""

import os
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora import HomeAssistant, home_assistant


def test_pairs_align_by_key_path():
    english = {"a": {"x": " One ", "y": "Two"}, "b": {"x": "Three"}, "only": "English", "n": 1}
    german = {
        "b": {"x": "Drei"},
        "a": {"y": "Zwei", "x": "Eins\n"},
        "other": "Deutsch",
        "n": 1,
        "only": {"x": "English"},
    }
    assert home_assistant.select_pairs([(english, german)]) == (
        [("One", "Eins"), ("Two", "Zwei"), ("Three", "Drei")],
        {},
    )


@pytest.mark.parametrize(
    "mark",
    ["{n}", "<b>", "`x`", "a\nb", "[a](b)", "http://a", "https://a", "www.a", "**a**", "[%key%]"],
)
def test_markup_on_either_side_drops_the_pair(mark):
    kept = ({"k": "a [b] * (c) www http"}, {"k": "control"})
    pairs, dropped = home_assistant.select_pairs(
        [({"k": mark}, {"k": "b"}), ({"k": "a"}, {"k": f"b {mark} c"}), kept]
    )
    assert (pairs, dropped) == ([("a [b] * (c) www http", "control")], {"markup": 2})


def test_empty_untranslated_and_duplicate_pairs_are_counted():
    english = {"1": "", "2": "a", "3": "Wi-Fi", "4": "Yes", "5": "Yes", "6": "Yes"}
    german = {"1": "x", "2": " ", "3": "Wi-Fi ", "4": "Ja", "5": "Ja", "6": "Doch"}
    pairs, dropped = home_assistant.select_pairs([(english, german)])
    assert pairs == [("Yes", "Ja"), ("Yes", "Doch")]
    assert dropped == {"empty": 2, "untranslated": 1, "duplicate": 1}


WORD = st.text(max_size=4)
TREE = st.recursive(
    WORD, lambda children: st.dictionaries(WORD, children, max_size=4), max_leaves=12
)
DOCUMENT = st.dictionaries(WORD, TREE, max_size=4)


@given(st.lists(st.tuples(DOCUMENT, DOCUMENT), max_size=4))
def test_every_kept_pair_is_stripped_different_plain_and_once(documents):
    pairs, dropped = home_assistant.select_pairs(documents)
    assert len(set(pairs)) == len(pairs)
    assert set(dropped) <= {"empty", "untranslated", "markup", "duplicate"}
    for english, other in pairs:
        assert english
        assert other
        assert english != other
        assert (english, other) == (english.strip(), other.strip())
        assert not home_assistant.MARKUP.search(english + other)


@pytest.mark.parametrize(
    ("english", "split"),
    [("Text number 0", "train"), ("Text number 24", "valid"), ("Text number 13", "test")],
)
def test_split_is_the_same_on_every_machine(english, split):
    assert home_assistant.split_of(english) == split


def test_real_wheel():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "keras_transformer"
    if not (cache / home_assistant.WHEEL).exists():
        pytest.skip(f"{home_assistant.WHEEL} is not in {cache}: make train downloads it")
    with mock.patch.object(
        home_assistant, "_download", side_effect=AssertionError("the cached wheel is broken")
    ):
        corpus = HomeAssistant(cache_dir=str(cache)).load()
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (29829, 939, 981)
    assert ("Failed to connect", "Verbindung fehlgeschlagen") in zip(
        corpus.train.sources, corpus.train.targets, strict=True
    )
    assert not set(corpus.train.sources) & (set(corpus.valid.sources) | set(corpus.test.sources))
