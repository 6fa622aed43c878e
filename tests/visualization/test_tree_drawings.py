"""Labels and words of a tree have places of their own, and stand over what they are over."""

import importlib.util
import itertools
import random
import sys
import types
from typing import ClassVar

import pytest

from keras_transformer import parse as parse_command
from keras_transformer import startup
from keras_transformer.inference.translator import Translator
from keras_transformer.visualization.tree_drawings import as_text, places
from pipelines.trees import Tree, parse

GAP = 1.5


def drawn_tree(draw, depth):
    if depth == 0 or draw.random() < 0.2:
        return Tree(draw.choice(["XX", "XX", "NN"]), ("w" * draw.randint(1, 9),))
    children = [drawn_tree(draw, depth - 1) for _ in range(draw.randint(1, 4))]
    return Tree("L" * draw.randint(1, 30), tuple(children))


def side(place, sign):
    return place.middle + sign * len(place.text) / 2


def assert_laid_out(tree, placed):
    """No two texts of a level touch, words stand in order below all else, and what hangs on a
    label hangs on either side of it or below.
    """
    words = [place for place in placed if place.is_word]
    assert [place.text for place in words] == tree.words
    assert len({place.level for place in words}) == 1
    assert all(place.level < words[0].level for place in placed if not place.is_word)
    for level in range(words[0].level + 1):
        row = [place for place in placed if place.level == level]
        for left, right in itertools.pairwise(row):
            assert side(left, 1) + GAP <= side(right, -1) + 1e-9
    assert min(side(place, -1) for place in placed) >= GAP / 2 - 1e-9
    for place in placed:
        hanging = [one.middle for one in placed if one.parent is place]
        assert place.is_word or min(hanging) - 1e-9 <= place.middle <= max(hanging) + 1e-9
        assert place.parent is None or place.parent.level < place.level


@pytest.mark.parametrize("seed", range(30))
def test_any_tree_is_laid_out(seed):
    tree = drawn_tree(random.Random(seed), 5)
    assert_laid_out(tree, places(tree, len, GAP))


def test_control_places_that_touch_are_noticed():
    tree = parse("(S (XX word) (XX word))")
    with pytest.raises(AssertionError):
        assert_laid_out(tree, places(tree, lambda text: len(text) / 2, GAP))


def test_a_tag_is_a_label_and_xx_is_none():
    tree = parse("(S (NP (DT the) (XX cat)) (XX -LRB-))")
    placed = places(tree, len, GAP)
    told = [(place.text, place.level, place.is_word) for place in placed]
    assert told == [
        ("S", 0, False),
        ("NP", 1, False),
        ("DT", 2, False),
        ("the", 3, True),
        ("cat", 3, True),
        ("(", 3, True),
    ]
    assert placed[4].parent.text == "NP"


def test_a_tree_that_is_too_deep_is_refused():
    """As an untrained parser may write it: no RecursionError."""
    deep = parse("(S " * 1200 + "(XX a)" + ")" * 1200)
    told = r"^a drawing has room for 200 levels\. Received: a tree of 1201\. Pass --tree_format=br"
    with pytest.raises(ValueError, match=told):
        places(deep, len, GAP)
    if importlib.util.find_spec("nltk"):
        with pytest.raises(ValueError, match=told):
            as_text(deep)
    assert len(places(parse("(S " * 199 + "(XX a)" + ")" * 199), len, GAP)) == 200


def test_words_stand_in_order_below_their_labels():
    pytest.importorskip("nltk")
    text = as_text(parse("(S (NP (DT the) (NN cat)) (VP (XX sits)) (XX -RRB-))"))
    lines = text.split("\n")
    assert lines[0].strip() == "S"
    assert lines[-1].split() == ["the", "cat", "sits", ")"]
    assert "│" in text
    assert "DT" not in text
    labels = next(line for line in lines if "NP" in line)
    assert lines[-1].index("the") <= labels.index("NP") <= lines[-1].index("cat") + 3


def test_a_word_alone():
    pytest.importorskip("nltk")
    assert as_text(parse("(XX -LRB-)")) == "("
    assert as_text(parse("(NP (XX a))")).split() == ["NP", "│", "a"]


def test_without_nltk_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.tree", None)
    with pytest.raises(
        ValueError, match=r"^--tree_format=drawn needs nltk.*pip install '.*\[parsing\]'"
    ):
        as_text(parse("(S (XX a))"))


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
