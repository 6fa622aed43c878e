"""What tests write: trees, words in them, pictures, and sets of TensorFlow Datasets."""

import pathlib
import types
from collections.abc import Mapping, Sequence

import pytest
import tensorflow as tf
import tensorflow_datasets
from hypothesis import strategies as st

from pipelines.corpora import tfds
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


def prepare(
    dataset: str, data_dir, sentences: Mapping[str, Sequence[Mapping[str, str]]], shards: int = 3
):
    """Have TFDS write a set of its catalogue, its record files and its metadata, from our sentences
    instead of its downloads.

    Args:
        sentences: split -> dictionaries language -> sentence.

    Returns:
        `data_dir`.
    """
    builder = tfds.package().builder(dataset, data_dir=data_dir)
    generators = {
        split: ((number, example) for number, example in enumerate(examples))
        for split, examples in sentences.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            type(builder),
            "_make_download_manager",
            lambda *_, **__: types.SimpleNamespace(downloaded_size=0),
        )
        patch.setattr(type(builder), "_split_generators", lambda *_, **__: generators)
        builder.download_and_prepare(
            download_config=tensorflow_datasets.download.DownloadConfig(num_shards=shards)
        )
    return data_dir
