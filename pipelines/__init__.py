"""Strings to tensors: corpora, vocabulary, buckets and batches (Vaswani et al. 2017, section 5.1).

The lowest layer of the code: nothing here imports `keras_transformer`.
"""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needing(extra: str, feature: str) -> Iterator[None]:
    """Say which of our extras to install if a package that the block imports is missing."""
    try:
        yield
    except ImportError as error:
        raise ValueError(
            f"{feature} needs {error.name or error}, which is not installed: pip install "
            f"'keras-transformer-nmt[{extra}]'."
        ) from error
