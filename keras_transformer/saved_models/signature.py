"""What a signature of a SavedModel takes and gives."""

import dataclasses

import numpy as np
import tensorflow as tf
from google.protobuf.message import Message


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """What a signature takes or gives under a name; sizes are None where any will do, the shape is
    None where the rank is unknown.
    """

    name: str
    dtype: tf.DType
    shape: tuple | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """One of a SavedModel's functions: its tensors by name, and arrays for those of the inputs that
    may be left out.
    """

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


def signature_of(definition: Message) -> Signature:
    """Read a SignatureDef."""
    return Signature(
        inputs=_specs(definition.inputs),
        outputs=_specs(definition.outputs),
        defaults={
            name: tf.make_ndarray(value) for name, value in sorted(definition.defaults.items())
        },
    )


def _specs(infos):
    """In the order of their names, as TF Serving lists them."""
    return {name: _spec(info) for name, info in sorted(infos.items())}


def _spec(info):
    shape = info.tensor_shape
    sizes = (
        None
        if shape.unknown_rank
        else tuple(None if dimension.size < 0 else dimension.size for dimension in shape.dim)
    )
    return TensorSpec(info.name, tf.as_dtype(info.dtype), sizes)
