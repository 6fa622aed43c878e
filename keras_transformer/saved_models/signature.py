"""Inputs and outputs of a model's signature, in NumPy's types: TensorFlow is not needed."""

import dataclasses
from collections.abc import Iterable

import numpy as np

DEFAULT_SIGNATURE = "serving_default"
# JSON has no infinity: where a hypothesis is missing, the score is the lowest float32.
NO_SCORE = np.finfo(np.float32).min


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """A named input or output of a signature. A size is None if it may be any, the shape is None if
    the rank is unknown. Strings are bytes, of NumPy's dtype object.
    """

    name: str
    dtype: np.dtype
    shape: tuple | None

    @property
    def is_text(self) -> bool:
        return self.dtype.kind == "O"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a model: its tensors by name, and the default arrays of optional inputs."""

    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    defaults: dict[str, np.ndarray]

    @property
    def required(self) -> list[str]:
        """Names of the inputs that a request must have."""
        return [name for name in self.inputs if name not in self.defaults]

    @property
    def plain_input(self) -> str:
        """Name of the input that gets a value without a name."""
        return (self.required or list(self.inputs))[0]

    @property
    def is_mergeable(self) -> bool:
        """Whether requests can share a batch.

        They cannot where the width of an output may depend on the longest text of the batch.
        """
        return all(spec.shape and None not in spec.shape[1:] for spec in self.outputs.values())


def as_bytes(lines: Iterable[str]) -> np.ndarray:
    """Convert strings (B,) to those of a signature."""
    return np.array([line.encode("utf-8", errors="replace") for line in lines], dtype=object)


def as_strings(array: Iterable[bytes]) -> list[str]:
    """Convert a signature's strings (B,) to Python's."""
    return [text.decode("utf-8", errors="replace") for text in array]
