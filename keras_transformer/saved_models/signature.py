"""What a signature of a model takes and gives, in NumPy's types, without TensorFlow too."""

import dataclasses
from collections.abc import Iterable

import numpy as np

DEFAULT_SIGNATURE = "serving_default"
# JSON has no infinity: where a hypothesis is missing, the score is the lowest float32.
NO_SCORE = np.finfo(np.float32).min


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """What a signature takes or gives under a name; sizes are None where any will do, the shape is
    None where the rank is unknown. Strings are bytes, NumPy's objects.
    """

    name: str
    dtype: np.dtype
    shape: tuple | None

    @property
    def is_text(self) -> bool:
        return self.dtype.kind == "O"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A model's function: its tensors by name, and arrays for inputs that may be left out."""

    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    defaults: dict[str, np.ndarray]

    @property
    def required(self) -> list[str]:
        """Names of the inputs that a request must have."""
        return [name for name in self.inputs if name not in self.defaults]

    @property
    def plain_input(self) -> str:
        """Name of the input that a value without a name is meant for."""
        return (self.required or list(self.inputs))[0]

    @property
    def is_mergeable(self) -> bool:
        """Whether requests can share a batch.

        They cannot where the width of an output may depend on the longest text of the batch.
        """
        return all(spec.shape and None not in spec.shape[1:] for spec in self.outputs.values())


def as_bytes(lines: Iterable[str]) -> np.ndarray:
    """Strings as a signature takes them, (B,)."""
    return np.array([line.encode("utf-8", errors="replace") for line in lines], dtype=object)


def as_strings(array: Iterable[bytes]) -> list[str]:
    """A signature's strings (B,) as Python's."""
    return [one.decode("utf-8", errors="replace") for one in array]
