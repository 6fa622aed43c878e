"""What the flags of translation say of its text and of its search."""

import dataclasses
import os
from collections.abc import Mapping

from keras_transformer.decoding import DecodingOptions


def decoding_options(values: Mapping) -> DecodingOptions:
    """What the flags of the groups "search" and "decoding" say, by name."""
    names = [field.name for field in dataclasses.fields(DecodingOptions) if field.name in values]
    # Training draws no translations; its seed is not theirs.
    draws = values.get("samples", 0)
    return DecodingOptions(**{name: values[name] for name in names if name != "seed" or draws})


def corpus_settings(values: Mapping) -> dict:
    """What `pipelines.corpora.load` needs to load the same text again.

    Args:
        values: of the flags of the groups "corpus" and "seed", by name.
    """
    return {
        "name": values["corpus"],
        "source_language": values["source_language"],
        "target_language": values["target_language"],
        "data_dir": _absolute(values["data_dir"]),
        # base.flags names a data set: it does not count for another corpus.
        "dataset": values["dataset"] if values["corpus"] == "tfds" else None,
        "splits": values["splits"],
        "mixture": _absolute(values["mixture"]),
        "prefixes": [values[f"{split}_prefix"] for split in ("train", "valid", "test")],
        "seed": values["seed"],
    }


def _absolute(path):
    """The same path from any folder; an address such as gs://bucket/folder is one already."""
    return path if not path or "://" in path else os.path.abspath(path)
