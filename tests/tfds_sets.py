"""Sets of TensorFlow Datasets' catalogue, made without a network."""

import types
from collections.abc import Mapping, Sequence

import pytest
import tensorflow_datasets

from pipelines.corpora import tfds


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
