"""What the flags say of the text to learn from."""

import os
from collections.abc import Mapping


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
        "tree_leaves": values["tree_leaves"],
    }


def _absolute(path):
    """The same path from any folder; an address such as gs://bucket/folder is one already."""
    return path if not path or "://" in path else os.path.abspath(os.path.expanduser(path))
