"""Lines in, what a SavedModel says of each out: labels, tags, filled masks, vectors, classes of
pictures.
"""

import os
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.inference.live import as_strings
from keras_transformer.inference.loading import exported_model
from keras_transformer.inference.text_reader import MASKS, masks_of, refuse_without_mask
from keras_transformer.saved_models.session import (
    DEFAULT_SIGNATURE,
    SavedModel,
    damaged,
    read_meta_graph,
    reason_of,
)
from keras_transformer.saved_models.signature import Signature, signature_of

INPUTS_A_CALL = 64
# The input whose lines name files.
PNG = "png"
# Where pictures are files, the model's own signature takes numbers instead.
OF_FILES = "classify_png"
# The output of what guesses hidden words.
FILLED = "filled"


class Predictor:
    """Ask one signature of a SavedModel that takes one string, or the bytes of a picture file.

    Args:
        model: loaded, with that signature.
        signature: its name.
        masks: what hides a word in texts, for a model that guesses hidden words.

    Example:
        predictor = Predictor.load("saved_models/intents")
        labels = predictor.lines(["turn on the lamp"])
    """

    def __init__(self, model: SavedModel, signature: str, masks: Sequence[str] = MASKS):
        self._model = model
        self._masks = masks
        self._name = signature
        self._signature = model.signatures[signature]
        [self._input] = self._signature.required

    @classmethod
    def load(cls, path: str | os.PathLike, signature: str | None = None) -> "Predictor":
        """Load a SavedModel.

        Args:
            path: its folder, or a folder of numbered versions of it.
            signature: which to ask. Default: "classify_png", or "serving_default" where there is
                none.

        Raises:
            FileNotFoundError: if there is no model.
            ValueError: if it is damaged or a run's folder, or has no such signature.
        """
        version = exported_model(path)
        try:
            definitions = read_meta_graph(version).signature_def
        except (OSError, ValueError) as error:
            raise damaged(version, error) from error
        signatures = {name: signature_of(one) for name, one in definitions.items() if one.inputs}
        possible = sorted(name for name, one in signatures.items() if _takes_one_string(one))
        if signature is None:
            signature = OF_FILES if OF_FILES in possible else DEFAULT_SIGNATURE
        if signature not in possible:
            raise ValueError(
                f"signature must be one of {version} that takes one string: "
                f"{', '.join(possible) or 'there is none'}. Received: {signature!r}."
            )
        masks = masks_of(version)
        try:
            return cls(SavedModel(version, (signature,)), signature, masks)
        except (OSError, tf.errors.OpError) as error:
            raise damaged(version, error) from error

    def lines(self, inputs: Sequence[str]) -> list[str]:
        """One string for each input.

        Args:
            inputs: texts, or names of PNG or JPEG files.

        Raises:
            ValueError: if the signature gives several strings for an input, or none; or naming a
                picture that the model cannot take, or a text without a mask to guess.
        """
        names = [
            name
            for name, spec in self._signature.outputs.items()
            if spec.dtype == tf.string and spec.shape is not None and len(spec.shape) == 1
        ]
        if len(names) != 1:
            raise ValueError(
                f"{self._name} gives {', '.join(self._signature.outputs)}, which is not one line "
                "for a line. Add --json."
            )
        self._check(inputs)
        found = []
        for start in range(0, len(inputs), INPUTS_A_CALL):
            given = self._asked(inputs[start : start + INPUTS_A_CALL])
            found += as_strings(given[names[0]])
        return found

    def objects(self, inputs: Sequence[str]) -> Iterator[dict]:
        """All outputs for each input, and the input itself, by name, as JSON has values.

        Inputs are asked alone where the width of an output depends on the others in a batch.

        Raises:
            ValueError: naming an input that the model cannot take, as `lines`.
        """
        self._check(inputs)
        at_once = INPUTS_A_CALL if self._signature.is_mergeable else 1
        for start in range(0, len(inputs), at_once):
            asked = inputs[start : start + at_once]
            given = self._asked(asked)
            for number, one in enumerate(asked):
                outputs = {name: _plain(values[number]) for name, values in given.items()}
                yield {self._input: one, **outputs}

    def _check(self, inputs):
        if FILLED in self._signature.outputs:
            refuse_without_mask(inputs, self._masks)

    def _asked(self, inputs):
        rows = np.array([self._content(one) for one in inputs], dtype=object)
        try:
            return self._model.run(self._name, {**self._signature.defaults, self._input: rows})
        except tf.errors.InvalidArgumentError as error:
            if len(inputs) > 1:
                # The message does not say which of them it was.
                for one in inputs:
                    self._asked([one])
            raise ValueError(f"{inputs[0]!r}: {reason_of(error)}") from error

    def _content(self, line):
        """The bytes that the model takes."""
        return pathlib.Path(line).read_bytes() if self._input == PNG else line.encode("utf-8")


def _takes_one_string(signature: Signature):
    return [signature.inputs[name].dtype for name in signature.required] == [tf.string]


def _plain(value):
    """Strings, numbers and lists of them. Numbers have the digits that a float32 needs."""
    if isinstance(value, np.ndarray | list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return float(str(value)) if isinstance(value, np.floating) else value.item()
