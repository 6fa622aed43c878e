"""Ask an encoder-only model for masked words, labels, tags or vectors of texts."""

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_transformer.inference.functions import Functions, LiveFunctions, saved_functions
from keras_transformer.inference.line_batches import in_batches_of_bytes, listed
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.signature import as_bytes, as_strings

# The masks to look for if a model does not name its own: our vocabularies' and BERT's.
MASKS = ("<mask>", "[MASK]")


class TextReader:
    """Ask an encoder-only model.

    Example:
        reader = TextReader.load("saved_models/bert")
        [[guesses]] = reader.guesses(["Turn on the <mask>."])
    """

    def __init__(self, functions: Functions):
        self._functions = functions

    @classmethod
    def of(cls, module) -> "TextReader":
        """Return the reader of a live `TextEncoderModule`."""
        return cls(LiveFunctions(module))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TextReader":
        """Load a SavedModel; a run has to be exported."""
        return cls(saved_functions(ModelPath.exported(path)))

    def guesses(self, texts: Sequence[str]) -> list[list[dict[str, float]]]:
        """Return the likeliest pieces for each mask of each text, with their probabilities, best
        first. Refuse a text without a mask (`<mask>`; for an imported BERT `[MASK]`).
        """
        return self._each("fill_mask", texts, _guesses)

    def filled(self, texts: Sequence[str]) -> list[str]:
        """Replace each mask in texts by its likeliest piece."""
        return self._each("fill_mask", texts, lambda answer: as_strings(answer["filled"]))

    def labels(self, texts: Sequence[str]) -> list[str]:
        """Return the likeliest label of each text."""
        return self._each("classify", texts, lambda answer: as_strings(answer["label"]))

    def tags(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the tags of each text's words, which white space separates."""
        rows = self._each("tag", texts, lambda answer: answer["tags"])
        return [as_strings([tag for tag in row if tag]) for row in rows]

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors of length 1, (texts, d_model): the product of two is their cosine."""
        if not (texts := listed(texts, "texts")):
            raise ValueError("`texts` must have a text. Received: none.")
        return np.stack(self._each("embed", texts, lambda answer: answer["vector"]))

    def search(self, queries: Sequence[str], texts: Sequence[str], count: int) -> np.ndarray:
        """Return the indices of the texts nearest to each query, best first, (queries, count)."""
        cosines = self.vectors(queries) @ self.vectors(texts).T
        return np.argsort(-cosines, axis=1, kind="stable")[:, :count]

    def _each(self, name: str, texts: Sequence[str], rows_of: Callable) -> list:
        """Call a function of the model in batches; `rows_of` its answer are a batch's results."""
        if name == "fill_mask":
            refuse_without_mask(texts, self._functions.facts)
        if name not in self._functions:
            raise ValueError(
                f"{self._functions.name} has no {name}. Received: a model with "
                f"{', '.join(sorted(self._functions))}. Name a model of the task that has it."
            )
        function = self._functions[name]
        return in_batches_of_bytes(lambda batch: rows_of(function(text=as_bytes(batch))), texts)


def _guesses(answer):
    return [
        [
            dict(zip(as_strings(candidates), map(float, likely), strict=True))
            for candidates, likely in zip(pieces, probabilities, strict=True)
            if candidates[0]
        ]
        for pieces, probabilities in zip(answer["pieces"], answer["probabilities"], strict=True)
    ]


def refuse_without_mask(texts: Sequence[str], facts: Mapping) -> None:
    """Refuse texts without the mask that the facts of a model name, else without any of `MASKS`."""
    masks = [facts["mask"]] if "mask" in facts else MASKS
    for number, text in enumerate(listed(texts, "texts"), start=1):
        if not any(mask in text for mask in masks):
            raise ValueError(
                f"every text must have a mask, {' or '.join(masks)}, in place of a word. "
                f"Received: text {number}, {text!r}. Write one there."
            )
