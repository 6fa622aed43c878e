"""Trees in brackets, and how far attention agrees with them."""

import itertools

import numpy as np
import pytest

from keras_transformer.visualization.bracket_trees import (
    agreement,
    by_chance,
    phrases_of,
    read_phrases,
    together,
)
from pipelines import trees

TREE = "( (S (NP (DT The) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (PRP it)))) (. .)) )"
WORDS = ["The", "cat", "sits", "on", "it", "."]
SPANS = [(0, 2), (0, 6), (2, 5), (3, 5)]


def test_words_and_constituents_are_found():
    assert phrases_of(trees.plain(trees.parse(TREE))) == (WORDS, SPANS)


def test_traces_are_no_words_and_brackets_are_as_in_the_text(tmp_path):
    path = tmp_path / "some.trees"
    line = "(S (NP (-NONE- *)) (VP (VB Go) (PRN (-LRB- -LRB-) (RB now) (-RRB- -RRB-))))"
    path.write_text(f"{line}\n\n(S (-NONE- *))\n{TREE}\n{TREE}\n", encoding="utf-8")
    assert read_phrases(path, 3) == [
        (["Go", "(", "now", ")"], [(0, 4), (1, 4)]),
        (WORDS, SPANS),
    ]


def test_a_broken_tree_is_told_with_its_line(tmp_path):
    path = tmp_path / "broken.trees"
    path.write_text(f"{TREE}\n(S (NN a)))\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"broken.trees, line 2: token \d+, '\)', closes a bracket"
    ):
        read_phrases(path, 2)
    assert len(read_phrases(path, 1)) == 1


def test_words_belong_together_in_the_smallest_constituent():
    belongs = together(len(WORDS), SPANS)
    for one, other in itertools.product(range(len(WORDS)), repeat=2):
        holding = [span for span in SPANS if one in range(*span)]
        smallest = min(holding, key=lambda span: span[1] - span[0])
        assert belongs[one, other] == (one != other and other in range(*smallest))
    assert belongs[4].tolist() == [False, False, False, True, False, False]


def test_a_head_that_stays_in_its_phrase_agrees_and_one_that_leaves_it_does_not():
    belongs = together(len(WORDS), SPANS)
    # Attention to oneself does not count, however strong.
    inside = 0.1 * belongs + 0.9 * np.eye(6)
    assert agreement(np.stack([inside, 1.0 - belongs]), belongs).mean(axis=-1).tolist() == [
        1.0,
        1 / 6,  # The full stop's phrase is the sentence, which it cannot leave.
    ]


def test_chance_is_the_mean_over_all_choices():
    belongs = together(len(WORDS), SPANS)
    random = np.random.default_rng(1)
    drawn = agreement(random.random((20_000, 6, 6)), belongs).mean(axis=0)
    np.testing.assert_allclose(by_chance(belongs), drawn, atol=0.02)
