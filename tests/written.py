"""What tests write: words in trees, and pictures."""

import pathlib

import tensorflow as tf


def escaped(word):
    """A text's word as it stands in brackets."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def write_png(path, pixels):
    """Write pixels, uint8 (H, W, C), as a PNG file."""
    pathlib.Path(path).write_bytes(tf.io.encode_png(pixels).numpy())
