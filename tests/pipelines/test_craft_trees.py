"""The trees of CRAFT, where the team's shared folder is: nothing is lost on the way to symbols and
back, in Python and in the graph.
"""

import functools
import itertools
import pathlib

import pytest
import tensorflow as tf

from pipelines.corpora import treebank
from pipelines.trees import Tree, bracketing, escaped, fold, plain, unescaped
from pipelines.trees.linearization import LEAVES, WORD, from_symbols, to_symbols

CRAFT = pathlib.Path(__file__).parents[3] / "shared" / "data" / "craft"
# Trees of each split that the graph writes.
SAMPLE = 150
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CRAFT.is_dir(), reason=f"{CRAFT} is not on this machine"),
]


@pytest.fixture(scope="module")
def splits():
    """All trees of each split."""
    return {
        path.name: [tree for tree in map(plain, treebank.read_trees(path)) if tree]
        for path in sorted(CRAFT.glob("*.trees.gz"))
    }


def untagged(tree):
    """The tree with XX as each part of speech."""
    return fold(
        tree, lambda inner, made: Tree(WORD if inner.is_preterminal else inner.label, tuple(made))
    )


def test_all_trees_are_there(splits):
    assert {name.partition(".")[0] for name in splits} == {"train", "valid", "test"}
    assert sum(map(len, splits.values())) > 28_000


@pytest.mark.parametrize("leaves", LEAVES)
def test_every_tree_comes_back(splits, leaves):
    for tree in itertools.chain(*splits.values()):
        expected = tree if leaves == "parts_of_speech" else untagged(tree)
        assert from_symbols(to_symbols(tree, leaves), tree.words) == expected


def test_a_parser_writes_the_words_as_the_gold_trees_have_them(splits):
    words = {word for tree in itertools.chain(*splits.values()) for word in tree.words}
    assert [word for word in words if escaped(unescaped(word)) != word] == []
    assert {"-LRB-", "-RRB-", "[", "]", "{", "}", "/"} <= words


@pytest.mark.parametrize("leaves", LEAVES)
def test_the_graph_writes_the_symbols_that_python_writes(splits, leaves):
    graph = tf.function(
        functools.partial(bracketing.symbols, leaves=leaves),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    for trees in splits.values():
        sample = trees[:: len(trees) // SAMPLE]
        found = graph(tf.constant(list(map(str, sample)))).numpy().tolist()
        assert found == [" ".join(to_symbols(tree, leaves)).encode() for tree in sample]
