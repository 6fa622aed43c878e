"""Labels and words of a tree have places of their own, and stand over what they are over."""

import itertools
import random

import pytest

from keras_transformer.visualization.tree_layout import places
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
    assert len(places(parse("(S " * 199 + "(XX a)" + ")" * 199), len, GAP)) == 200
