"""Labels and words of a tree have places of their own, and stand over what they are over."""

import importlib.util
import itertools
import random
import sys
import types
import zlib
from unittest import mock

import numpy as np
import pytest
from command_flags import flags_of

from keras_transformer import parse as parse_command
from keras_transformer import startup
from keras_transformer.inference.live import Hypothesis
from keras_transformer.inference.translator import Translator
from keras_transformer.visualization.hypotheses import boxes, tree
from keras_transformer.visualization.tree_drawings import all_as_text, as_text, places
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
    """No two texts of a level touch, the words stand in order below all labels, and a label stands
    between its first child and its last.
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
        middles = [child.middle for child in placed if child.parent is place]
        assert place.is_word or min(middles) - 1e-9 <= place.middle <= max(middles) + 1e-9
        assert place.parent is None or place.parent.level < place.level


@pytest.mark.parametrize("seed", range(30))
def test_any_tree_is_laid_out(seed):
    tree = drawn_tree(random.Random(seed), 5)
    assert_laid_out(tree, places(tree, len, GAP))


def test_a_tag_is_drawn_as_a_label_unless_it_is_xx():
    tree = parse("(S (NP (DT the) (XX cat)) (XX -LRB-))")
    placed = places(tree, len, GAP)
    labels = [(place.text, place.level) for place in placed if not place.is_word]
    assert labels == [("S", 0), ("NP", 1), ("DT", 2)]
    assert [(place.text, place.level) for place in placed[3:]] == [("the", 3), ("cat", 3), ("(", 3)]
    assert placed[4].parent.text == "NP"


def test_a_tree_that_is_too_deep_is_refused_or_stays_in_brackets():
    """An untrained parser may write one: no RecursionError, and no other tree is lost."""
    deep = parse("(S " * 1200 + "(XX a)" + ")" * 1200)
    error = r"^a drawing has room for 200 levels\. Received: a tree of 1201\. Pass --tree_format=br"
    with pytest.raises(ValueError, match=error):
        places(deep, len, GAP)
    if importlib.util.find_spec("nltk"):
        assert all_as_text([str(deep), "(XX b)"]) == f"{deep}\n\nb\n\n"
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
    # A word alone.
    assert as_text(parse("(XX -LRB-)")) == "("
    assert as_text(parse("(NP (XX a))")).split() == ["NP", "│", "a"]


def test_a_drawing_without_nltk_is_refused_before_anything_is_parsed(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    flags = types.SimpleNamespace(
        num_hypotheses=1, tree_format="drawn", stream=False, input="-", output="-"
    )
    message = r"^--tree_format=drawn needs nltk.*pip install '.*\[parsing\]'"
    for draw in (lambda: parse_command._refuse(flags), lambda: as_text(parse("(S (XX a))"))):
        with pytest.raises(ValueError, match=message):
            draw()
    flags.tree_format = "brackets"  # A control.
    parse_command._refuse(flags)


def test_too_many_trees_for_a_picture_are_refused_before_they_are_parsed(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")

    translate = mock.Mock(side_effect=AssertionError("it parsed"))
    parser = types.SimpleNamespace(description={"task": "parsing"}, translate=translate)
    monkeypatch.setattr(Translator, "load", lambda *_, **__: parser)
    monkeypatch.setattr(startup, "spread_over_cores", lambda: 1)
    monkeypatch.setattr(parse_command.flags, "decoding_options", lambda FLAGS: {})
    lines = tmp_path / "lines.txt"
    lines.write_text("a b\n\n" * 21)
    files = (f"--input={lines}", f"--output={tmp_path / 'a.svg'}")
    flags = flags_of("parse", "--model=m", "--tree_format=picture", *files)
    with pytest.raises(ValueError, match=r"room for 1 to 20 trees\. Received: 21 sentences"):
        parse_command.main(flags)
    lines.write_text("a b\n" * 20)  # A control.
    with pytest.raises(AssertionError, match="it parsed"):
        parse_command.main(flags)


# Hypotheses as a tree: nothing is lost, nothing is drawn twice.
def log_probabilities(pieces):
    """A number in (-1, 0] for each piece, which depends on all pieces before it."""
    prefixes = (" ".join(pieces[: place + 1]) for place in range(len(pieces)))
    return [-zlib.crc32(prefix.encode()) / 2**32 for prefix in prefixes]


def hypotheses(count, length, seed=1):
    """Hypotheses, best first, that share beginnings."""
    random = np.random.default_rng(seed)
    words = [f"▁word{number}" for number in range(2)] + ["ending", "▁a"]
    distinct = {}
    while len(distinct) < count:
        first = ["▁all", "▁begin", "▁so"] * (length // 4)
        rest = list(random.choice(words, size=random.integers(1, length - len(first))))
        distinct[(*first, *rest, "</s>")] = None
    return [
        Hypothesis("", -float(rank), list(pieces), log_probabilities(pieces))
        for rank, pieces in enumerate(distinct)
    ]


def paths(branch, pieces=(), total=0.0):
    """(pieces, sum of log P, score, ranks) of each way from the root to an end."""
    pieces = (*pieces, *branch.pieces)
    total += branch.log_probability
    if not branch.branches:
        yield pieces, total, branch.score, branch.ranks
    for child in branch.branches:
        yield from paths(child, pieces, total)


@pytest.mark.parametrize("seed", range(5))
def test_each_way_through_the_tree_is_a_hypothesis(seed):
    answers = hypotheses(8, 12, seed)
    ends = {pieces: rest for pieces, *rest in paths(tree(answers))}
    assert len(ends) == 8
    for rank, answer in enumerate(answers, 1):
        total, score, ranks = ends[tuple(answer.pieces)]
        assert score == answer.score
        assert ranks == [rank]
        assert total == pytest.approx(sum(answer.log_probabilities))


def test_branches_with_the_same_beginning_are_merged():
    def first_pieces_differ(branch):
        firsts = [child.pieces[0] for child in branch.branches]
        assert len(set(firsts)) == len(firsts) != 1
        ranks = sorted(rank for child in branch.branches for rank in child.ranks)
        assert branch.ranks == ranks or not branch.branches
        for child in branch.branches:
            first_pieces_differ(child)

    first_pieces_differ(tree(hypotheses(16, 12)))


def test_one_hypothesis_is_one_branch_and_equal_ones_end_together():
    [answer] = hypotheses(1, 8)
    assert tree([answer]).pieces == answer.pieces
    assert tree([answer, answer]).ranks == [1, 2]


@pytest.mark.parametrize(("count", "length"), [(4, 48), (9, 12)])
def test_no_box_of_the_drawing_touches_another(count, length):
    pytest.importorskip("matplotlib")
    placed = boxes(tree(hypotheses(count, length)))
    assert len(placed) >= count
    for place, box in enumerate(placed):
        for prior in placed[:place]:
            beside = box.left >= prior.right or prior.left >= box.right
            apart = abs(box.middle - prior.middle) >= (box.branch.height + prior.branch.height) / 2
            assert beside or apart, (box.branch.text, prior.branch.text)
