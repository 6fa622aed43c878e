"""Text in capitals or in lower case as the training text would write it, in graphs as in Python."""

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.vocabularies.casing import TextCasing, cased_words
from pipelines.vocabularies.protected_spans import KINDS, ProtectedSpans, TextMarks
from pipelines.vocabularies.span_marks import GraphCasing, SpanMarks, marks_of

LINES = [
    *("Open the MQTT settings of Home Assistant", "The MQTT broker is off", "Open it at home"),
    *("Restart. Open Émile's settings", "Restart. Then open it", "Home Assistant is off. Restart"),
]
WORDS = ("MQTT", "Home", "Assistant", "Émile")
PROTECTED = ProtectedSpans(tuple(KINDS), truecase=True, cased_words=WORDS)
# Above are letters of later versions of Unicode than TensorFlow's library has.
LETTERS = st.characters(max_codepoint=0x2BFF)
# Given, read as, in capitals.
CASES = [
    ("TURN OFF THE LIGHTS", "Turn off the lights", True),
    ("turn off the lights", "Turn off the lights", False),
    ("OPEN MQTT. RESTART HOME ASSISTANT!", "Open MQTT. Restart Home Assistant!", True),
    ("open mqtt. restart home assistant!", "Open MQTT. Restart Home Assistant!", False),
    ("„ÖFFNE“ ÉMILE", "„Öffne“ Émile", True),
    ("SAVE {name} IN https://a.b/C", "Save ⟦1⟧ in ⟦2⟧", True),
    ("{name} IS OFF", "⟦1⟧ is off", True),
    ("<b>STOP IT</b>", "⟦1⟧Stop it⟦2⟧", True),
    ("ВЫКЛЮЧИ СВЕТ", "Выключи свет", True),
    ("ΑΝΟΙΞΕ ΤΟΥΣ", "Ανοιξε τους", True),
    # Both kinds of letters, too few of them, none, ß, a mixture's tag.
    *((text, text, False) for text in ("Turn OFF the MQTT", "MQTT", "LG TV", "OK", "", "日本語 1")),
    *((text, text, False) for text in ("STRAßE AUS", "<2de> turn off", "iPhone", "123 %")),
]


def read(marks, texts):
    found = marks.marked(tf.constant(texts, tf.string))
    return [
        (text.decode(), bool(is_capital))
        for text, is_capital in zip(found.text.numpy(), found.is_capital.numpy(), strict=True)
    ]


def test_words_are_those_with_capitals_where_no_sentence_begins():
    assert sorted(cased_words(LINES)) == sorted(WORDS)
    assert cased_words(LINES)[0] == "MQTT"
    assert cased_words(["Open It", "Open it", "Open it"]) == ()


def test_text_of_one_case_is_read_as_the_training_text_has_it():
    texts = [text for text, *_ in CASES]
    assert read(marks_of(PROTECTED), texts) == [(text, capital) for _, text, capital in CASES]
    python = TextMarks(PROTECTED)
    assert [python.marked(text)[::2] for text in texts] == [case[1:] for case in CASES]


def test_translations_of_capitals_are_in_capitals_but_for_spans():
    texts = ["TURN OFF {name}", "Turn off {name}", "turn off {name}"]
    marks = marks_of(PROTECTED)
    found = marks.marked(tf.constant(texts))
    translated = tf.constant(["⟦1⟧ große Straße"] * 3)
    back = [text.decode() for text in marks.put_back(translated, found).numpy()]
    assert back == ["{name} GROSSE STRASSE", *["{name} große Straße"] * 2]
    python = TextMarks(PROTECTED)
    assert [python.put_back("⟦1⟧ große Straße", python.marked(text)) for text in texts] == back
    # A reference and what a translation begins with are read as their source is.
    references = ["{name} AUSSCHALTEN"] * 3
    as_sources, agree = marks.marked_as(tf.constant(references), found)
    expected = ["⟦1⟧ ausschalten", *["⟦1⟧ AUSSCHALTEN"] * 2]
    assert [text.decode() for text in as_sources.numpy()] == expected
    assert agree.numpy().all()
    assert [python.marked_as(references[0], python.marked(text)) for text in texts] == expected


@pytest.mark.parametrize("words", [(), WORDS])
@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(LETTERS, max_size=30), max_size=6),
    piece=st.sampled_from([*WORDS, ". ", "İ"]),
)
def test_graphs_read_as_python_does(words, texts, piece):
    texts = [piece.join(text) for text in texts]
    texts = [text for text in texts if text.isprintable()]
    texts = [*texts, *map(str.upper, texts), *map(str.lower, texts)]
    python = [*map(TextCasing(words), texts)]
    graph = GraphCasing(words)(tf.constant(texts, tf.string))
    assert [text.decode() for text in graph.text.numpy()] == [text for text, _ in python]
    assert graph.is_capital.numpy().tolist() == [capital for _, capital in python]
    for text, (cased, capital) in zip(texts, python, strict=True):
        assert cased.casefold() == text.casefold()
        has_both = text not in (text.lower(), text.upper())
        assert not has_both or (cased, capital) == (text, False)


def test_control_without_the_option_text_stays_as_it_stands():
    protected = ProtectedSpans(tuple(KINDS))
    assert type(marks_of(protected)) is SpanMarks
    assert marks_of(None) is None
    assert TextMarks(protected).marked("TURN OFF") == ("TURN OFF", [], False)


def test_a_folder_keeps_the_words_and_a_description_does_not(tmp_path):
    PROTECTED.save(tmp_path)
    loaded = ProtectedSpans.load(tmp_path)
    assert loaded.cased_words == WORDS
    assert loaded == ProtectedSpans.of(PROTECTED.as_dict())
    assert PROTECTED.as_dict() == {"protect": tuple(KINDS), "protect_pattern": "", "truecase": True}
