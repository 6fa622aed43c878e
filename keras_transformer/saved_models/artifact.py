"""The interface by which a task defines the SavedModel of its trained model."""

import abc
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf


class Artifact(abc.ABC):
    """What is exported: a `tf.Module` and what is said of it.

    Golden examples are inputs of the signature "serving_default", each without the axis of the
    batch. Inputs that other signatures alone have may be there too: the export's self-check calls
    these with them, and with whatever has the right dtype where there are none. They travel with
    the SavedModel, together with what the live module gave for them: whether it still gives that
    can be asked wherever it runs.

    Args:
        module: the `tf.Module` to save.

    Attributes:
        what: one sentence on what it is, for the README.
    """

    what: str = "A model of keras_transformer."

    def __init__(self, module: tf.Module):
        self.module = module

    @property
    def weights(self) -> Sequence[tf.Variable]:
        """The variables of the module that are counted as its parameters."""
        return self.module.variables

    @abc.abstractmethod
    def signatures(self) -> dict[str, tf.types.experimental.PolymorphicFunction]:
        """Functions by name, each with one input signature.

        Every input and output has the examples of a batch along its first axis. "serving_default"
        is among them, and no output of it has the name of an input.
        """

    @abc.abstractmethod
    def golden_inputs(self, examples: Sequence) -> list[dict[str, np.ndarray]]:
        """Choose golden examples.

        Args:
            examples: what `Evaluation.examples` kept of the test set; may be empty.

        Returns:
            Arrays by name of the input, (...) without the axis of the batch; at least one example.
        """

    def facts(self) -> dict:
        """JSON that the `model.json` of the SavedModel says besides the run's description."""
        return {}

    def title(self, card: Mapping) -> str:
        """The heading of the README.

        Args:
            card: `model.json`.
        """
        return f"A model of the task {card.get('task', 'unknown')}"

    def rows(self, card: Mapping) -> dict[str, str]:
        """What the table in the README says, by heading.

        Args:
            card: `model.json`.
        """
        return {}

    def write_files(self, folder: pathlib.Path) -> None:
        """Write further files into `assets.extra`. By default there are none."""
        return
