"""Ask a SavedModel about each line: for labels, tags, filled masks, vectors or classes."""

import os
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.inference.functions import SavedFunctions, saved_functions
from keras_transformer.inference.line_batches import BATCH_BYTES, SHORTEST, in_batches_of_bytes
from keras_transformer.inference.text_reader import refuse_without_mask
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.signature import DEFAULT_SIGNATURE, as_bytes, as_strings
from keras_transformer.tensorflow_errors import reason_of

PICTURES_A_CALL = 64
# The input whose lines name files.
PNG = "png"
# The signature of a picture classifier that takes files; its default one takes pixels.
FILE_SIGNATURE = "classify_png"
# The output of a signature that fills masks.
FILLED = "filled"


class Predictor:
    """Ask one signature of a SavedModel that takes one string, or the bytes of a picture file.

    Example:
        predictor = Predictor.load("saved_models/intents")
        labels = predictor.lines(["turn on the lamp"])
    """

    def __init__(self, functions: SavedFunctions, name: str):
        self._function = functions[name]
        self._facts = functions.facts
        self._name = name
        self._signature = functions.signatures[name]
        [self._input] = self._signature.required
        # The least bytes that an input counts as. Of a picture file only the name is known.
        self._least = BATCH_BYTES // PICTURES_A_CALL if self._input == PNG else SHORTEST

    @classmethod
    def load(cls, path: str | os.PathLike, signature: str | None = None) -> "Predictor":
        """Load a signature, by default "classify_png" if it exists, else "serving_default"."""
        functions = saved_functions(ModelPath.exported(path))
        possible = sorted(
            name
            for name, spec in functions.signatures.items()
            if [spec.inputs[required].is_text for required in spec.required] == [True]
        )
        if signature is None:
            signature = FILE_SIGNATURE if FILE_SIGNATURE in possible else DEFAULT_SIGNATURE
        if signature not in possible:
            raise ValueError(
                f"signature must be one of {functions.name} that takes one string: "
                f"{', '.join(possible) or 'there is none'}. Received: {signature!r}."
            )
        return cls(functions, signature)

    def lines(self, inputs: Sequence[str]) -> list[str]:
        """Return one string for each input, a text or the name of a PNG or JPEG file."""
        names = [
            name
            for name, spec in self._signature.outputs.items()
            if spec.is_text and spec.shape is not None and len(spec.shape) == 1
        ]
        if len(names) != 1:
            raise ValueError(
                f"{self._name} gives {', '.join(self._signature.outputs)}, which is not one line "
                "for a line. Add --json."
            )
        self._check(inputs)
        return in_batches_of_bytes(
            lambda batch: as_strings(self._answer(batch)[names[0]]), inputs, self._least
        )

    def objects(self, inputs: Sequence[str]) -> Iterator[dict]:
        """Yield each input with all its outputs by name, as values of JSON.

        A batch has one input if the width of an output depends on the batch.
        """
        self._check(inputs)
        if self._signature.is_mergeable:
            rows = in_batches_of_bytes(self._rows, inputs, self._least)
        else:
            rows = (row for text in inputs for row in self._rows([text]))
        for text, row in zip(inputs, rows, strict=True):
            yield {self._input: text, **{name: _plain(value) for name, value in row.items()}}

    def _check(self, inputs):
        if FILLED in self._signature.outputs:
            refuse_without_mask(inputs, self._facts)
        if self._input == PNG and "" in inputs:
            raise ValueError("every line must name a PNG or JPEG file. Received: ''. Leave it out.")

    def _rows(self, inputs):
        answer = self._answer(inputs)
        return [dict(zip(answer, row, strict=True)) for row in zip(*answer.values(), strict=True)]

    def _answer(self, inputs):
        contents = as_bytes(inputs)
        if self._input == PNG:
            contents = np.array([pathlib.Path(name).read_bytes() for name in inputs], dtype=object)
        try:
            return self._function(**{self._input: contents})
        except tf.errors.InvalidArgumentError as error:
            if len(inputs) > 1:
                # Find the input at fault, which the message does not name.
                for text in inputs:
                    self._answer([text])
            raise ValueError(f"{inputs[0]!r}: {reason_of(error)}") from error


def _plain(value):
    """Return strings, numbers or lists of them; a number has the digits that a float32 needs."""
    if isinstance(value, np.ndarray | list):
        return [_plain(element) for element in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return float(str(value)) if isinstance(value, np.floating) else value.item()
