"""Examples that travel with a SavedModel, and what it gave for them when it was exported.

`golden.jsonl` has a JSON object a line: the inputs and the outputs of "serving_default" by name,
each without the axis of the batch, and inputs that other signatures alone have. Strings are as TF
Serving's REST takes them, {"b64": ...} where they are no UTF-8. So a translator's line is
{"text": "...", "translation": "..."}.
"""

import base64
import json
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.saved_models.artifact import Artifact

EDGES = (b"", b"  ", b"\xff no UTF-8 \xfe", b"a\tb\x00c", "日本語 😀 “ﬁ”".encode())
SENTENCES = 12
LONGEST = 400


def golden_texts(pieces: Sequence[str], examples: Sequence[str]) -> list[bytes]:
    """Choose strings to translate: some of real text, and some that real text seldom has.

    Args:
        pieces: of the vocabulary, of which sentences are made where there are no examples.
        examples: sentences of the model's test set; may be empty.
    """
    fitting = [example for example in examples if 0 < len(example) <= LONGEST]
    words = [piece[1:] for piece in pieces if piece.startswith("▁") and piece[1:].isalpha()] or [
        "a"
    ]
    made = [
        " ".join(words[(7 * start + 3 * place) % len(words)] for place in range(start + 1))
        for start in range(SENTENCES)
    ]
    return [*(sentence.encode() for sentence in (fitting or made)[:SENTENCES]), *EDGES]


def answered(artifact: Artifact, inputs: Sequence[Mapping]) -> list[dict[str, np.ndarray]]:
    """Ask the live module for the outputs of golden examples, one by one.

    Args:
        artifact: what is exported.
        inputs: of each example, arrays by name without the axis of the batch.

    Returns:
        Inputs and outputs of each example, arrays by name.

    Raises:
        ValueError: if an input and an output have one name.
    """
    serve = artifact.signatures()["serving_default"]
    dtypes = {one.name: one.dtype for one in serve.input_signature}
    examples = []
    for example in inputs:
        batch = {
            name: tf.constant(example[name][None], dtype)
            for name, dtype in dtypes.items()
            if name in example
        }
        outputs = {name: _first(tensor) for name, tensor in serve(**batch).items()}
        if both := sorted(outputs.keys() & example.keys()):
            raise ValueError(
                f"nothing was exported: {', '.join(both)} is an input and an output of "
                "serving_default. Give the output another name."
            )
        examples.append({**example, **outputs})
    return examples


def _first(tensor):
    return np.array(tensor[0].numpy(), tensor.dtype.as_numpy_dtype)


def write(path: pathlib.Path, examples: Sequence[Mapping]) -> None:
    """Write `golden.jsonl`.

    Args:
        path: the file.
        examples: from `answered`.
    """
    with open(path, "w", encoding="utf-8") as file:
        for example in examples:
            line = {name: _as_json(array.tolist()) for name, array in example.items()}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _as_json(value):
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}
