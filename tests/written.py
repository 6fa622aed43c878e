"""What tests write: trees, words in them, and pictures."""

import pathlib

import tensorflow as tf
from hypothesis import strategies as st

from pipelines.trees import Tree


def drawn_trees(labels, tags, words):
    """Any trees."""

    def above(inner):
        children = st.lists(inner, min_size=1, max_size=4).map(tuple)
        return st.builds(Tree, labels, children)

    return st.recursive(st.builds(Tree, tags, st.tuples(words)), above, max_leaves=15)


def escaped(word):
    """A text's word as it stands in brackets."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def write_png(path, pixels):
    """Write pixels, uint8 (H, W, C), as a PNG file."""
    pathlib.Path(path).write_bytes(tf.io.encode_png(pixels).numpy())
