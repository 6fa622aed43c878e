"""The types in the signatures of section 3's layers: arrays of whichever backend Keras runs on."""

from collections.abc import Callable
from typing import Any

# Keras has no common type for the tensors of TensorFlow, JAX and torch. Shapes are in docstrings.
Tensor = Any
# Any nest of tensors that have the same number of rows.
State = Any
# What is cached of positions that are attended to.
KeysAndValues = tuple[Tensor, Tensor]
# What stands inside an Add & Norm: x -> (y, by-product). The by-product is None, attention weights
# or the new state of a stepper.
Sublayer = Callable[[Tensor], tuple[Tensor, Any]]
