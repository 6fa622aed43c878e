"""What a signature of a model takes and gives, in NumPy's types, without TensorFlow too."""

import dataclasses

import numpy as np

DEFAULT_SIGNATURE = "serving_default"


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
