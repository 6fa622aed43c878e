"""A tree for a terminal: labels above, words below in their order."""

import sys
import types
from typing import ClassVar

import pytest

from keras_transformer import parse as parse_command
from keras_transformer import startup
from keras_transformer.inference.translator import Translator
from keras_transformer.visualization.tree_text import drawn
from pipelines.trees import parse


def test_words_stand_in_order_below_their_labels():
    pytest.importorskip("nltk")
    text = drawn(parse("(S (NP (DT the) (NN cat)) (VP (XX sits)) (XX -RRB-))"))
    lines = text.split("\n")
    assert lines[0].strip() == "S"
    assert lines[-1].split() == ["the", "cat", "sits", ")"]
    assert "│" in text
    assert "DT" not in text
    labels = next(line for line in lines if "NP" in line)
    assert lines[-1].index("the") <= labels.index("NP") <= lines[-1].index("cat") + 3


def test_a_word_alone():
    pytest.importorskip("nltk")
    assert drawn(parse("(XX -LRB-)")) == "("
    assert drawn(parse("(NP (XX a))")).split() == ["NP", "│", "a"]


def test_without_nltk_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.tree", None)
    with pytest.raises(
        ValueError, match=r"^--tree_format=drawn needs nltk.*pip install '.*\[parsing\]'"
    ):
        drawn(parse("(S (XX a))"))


def test_parse_tells_it_before_anything_is_parsed(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    asked = types.SimpleNamespace(
        num_hypotheses=1, tree_format="drawn", stream=False, input="-", output="-"
    )
    with pytest.raises(ValueError, match=r"^--tree_format=drawn needs nltk"):
        parse_command._refuse(asked)
    asked.tree_format = "brackets"  # A control.
    parse_command._refuse(asked)


def test_too_many_trees_for_a_picture_are_told_before_they_are_parsed(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")

    class Parser:
        description: ClassVar = {"task": "parsing"}

        def translate(self, sentences, **_):
            raise AssertionError("it parsed")

    monkeypatch.setattr(Translator, "load", lambda *_, **__: Parser())
    monkeypatch.setattr(startup, "spread_over_cores", lambda: 1)
    monkeypatch.setattr(parse_command.flags, "decoding_options", lambda FLAGS: {})
    lines = tmp_path / "lines.txt"
    lines.write_text("a b\n\n" * 21)
    asked = types.SimpleNamespace(
        model="m",
        precision="float32",
        num_hypotheses=1,
        tree_format="picture",
        raw_text=False,
        stream=False,
        input=str(lines),
        output="a.svg",
        decode_tokens=2048,
    )
    with pytest.raises(ValueError, match=r"room for 1 to 20 trees\. Received: 21 sentences"):
        parse_command.main(asked)
    lines.write_text("a b\n" * 20)  # A control.
    with pytest.raises(AssertionError, match="it parsed"):
        parse_command.main(asked)


def test_a_tree_that_is_too_deep_is_refused():
    pytest.importorskip("nltk")
    with pytest.raises(ValueError, match=r"^a drawing has room for 200 levels"):
        drawn(parse("(S " * 1200 + "(XX a)" + ")" * 1200))
