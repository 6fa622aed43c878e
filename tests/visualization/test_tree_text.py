"""A tree for a terminal: labels above, words below in their order."""

import sys

import pytest

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
