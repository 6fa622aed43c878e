"""Hypotheses as a tree: nothing is lost, nothing is told twice."""

import zlib

import numpy as np
import pytest

from keras_transformer.inference.live import Hypothesis
from keras_transformer.visualization.hypotheses import boxes, tree


def log_probabilities(pieces):
    """A number in (-1, 0] for each piece, which depends on all pieces before it."""
    prefixes = (" ".join(pieces[: place + 1]) for place in range(len(pieces)))
    return [-zlib.crc32(prefix.encode()) / 2**32 for prefix in prefixes]


def hypotheses(count, length, seed=1):
    """Best first; they share beginnings."""
    random = np.random.default_rng(seed)
    words = [f"▁word{number}" for number in range(2)] + ["ending", "▁a"]
    seen = {}
    while len(seen) < count:
        first = ["▁all", "▁begin", "▁so"] * (length // 4)
        drawn = list(random.choice(words, size=random.integers(1, length - len(first))))
        seen[(*first, *drawn, "</s>")] = None
    return [
        Hypothesis("", -float(rank), list(pieces), log_probabilities(pieces))
        for rank, pieces in enumerate(seen)
    ]


def paths(branch, pieces=(), total=0.0):
    """(pieces, sum of log P, score, ranks) of each way from the root to an end."""
    pieces = (*pieces, *branch.pieces)
    total += branch.log_probability
    if not branch.branches:
        yield pieces, total, branch.score, branch.ranks
    for one in branch.branches:
        yield from paths(one, pieces, total)


@pytest.mark.parametrize("seed", range(5))
def test_each_way_through_the_tree_is_a_hypothesis(seed):
    given = hypotheses(8, 12, seed)
    found = {pieces: rest for pieces, *rest in paths(tree(given))}
    assert len(found) == 8
    for rank, one in enumerate(given, 1):
        total, score, ranks = found[tuple(one.pieces)]
        assert score == one.score
        assert ranks == [rank]
        assert total == pytest.approx(sum(one.log_probabilities))


def test_branches_that_go_on_alike_are_one():
    def first_pieces_differ(branch):
        firsts = [one.pieces[0] for one in branch.branches]
        assert len(set(firsts)) == len(firsts) != 1
        assert branch.ranks == sorted(rank for one in branch.branches for rank in one.ranks) or (
            not branch.branches
        )
        for one in branch.branches:
            first_pieces_differ(one)

    first_pieces_differ(tree(hypotheses(16, 12)))


def test_one_hypothesis_is_one_branch_and_equal_ones_end_together():
    [one] = hypotheses(1, 8)
    assert tree([one]).pieces == one.pieces
    assert tree([one, one]).ranks == [1, 2]


@pytest.mark.parametrize("given", [[], [Hypothesis("a", -1.0, None, None)]])
def test_hypotheses_without_pieces_are_refused(given):
    with pytest.raises(ValueError, match="--picture=n_best needs the pieces of several hypotheses"):
        tree(given)


@pytest.mark.parametrize(("count", "length"), [(4, 48), (9, 12)])
def test_no_box_of_the_drawing_touches_another(count, length):
    pytest.importorskip("matplotlib")
    placed = boxes(tree(hypotheses(count, length)))
    assert len(placed) >= count
    for place, one in enumerate(placed):
        for other in placed[:place]:
            beside = one.left >= other.right or other.left >= one.right
            apart = abs(one.middle - other.middle) >= (one.branch.height + other.branch.height) / 2
            assert beside or apart, (one.branch.text, other.branch.text)
