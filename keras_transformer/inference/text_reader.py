"""What an encoder-only model says of texts in Python, a run's or an exported one: masked words,
labels, tags, vectors.
"""

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.inference.loading import exported_model, read_card
from keras_transformer.inference.text_encoder_module import TextEncoderModule
from keras_transformer.saved_models.session import reload

TEXTS_A_CALL = 64
# What hides a word where a model does not say it: in a vocabulary of ours, and in a BERT's.
MASKS = ("<mask>", "[MASK]")


class TextReader:
    """Ask an encoder-only model.

    Args:
        functions: by name, as a SavedModel has its signatures: "fill_mask", "classify", "tag",
            "embed", each from texts (B,) to outputs by name.
        name: of the model, for errors.
        masks: what hides a word in its texts: each of these.

    Example:
        reader = TextReader.load("saved_models/bert")
        [[guesses]] = reader.guesses(["Turn on the <mask>."])
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., dict]],
        name: str,
        masks: Sequence[str] = MASKS,
    ):
        self._functions = functions
        self._name = name
        self._masks = masks

    @classmethod
    def of(cls, module: TextEncoderModule) -> "TextReader":
        """That of a live module."""
        return cls(module.functions(), "the model", [module.vocabulary.marks.name])

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TextReader":
        """Load a SavedModel.

        Args:
            path: its folder, or a folder of numbered versions of it.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is damaged, or a run's folder, which has to be exported.
        """
        version = exported_model(path)
        return cls(reload(version).signatures, str(version), masks_of(version))

    def guesses(self, texts: Sequence[str]) -> list[list[dict[str, float]]]:
        """The likeliest pieces for each mask of each text, with their probabilities, best first.

        Args:
            texts: each with a mask at least, `<mask>`, of an imported BERT `[MASK]`.

        Raises:
            ValueError: naming a text without a mask.
        """
        refuse_without_mask(texts, self._masks)
        found = []
        for given in self._asked("fill_mask", texts):
            pieces, shares = (given[name].numpy() for name in ("pieces", "probabilities"))
            for of_text, shares_of_text in zip(pieces, shares, strict=True):
                masks = zip(of_text, shares_of_text, strict=True)
                found.append([_by_piece(*mask) for mask in masks if mask[0][0]])
        return found

    def filled(self, texts: Sequence[str]) -> list[str]:
        """Texts with the likeliest piece in place of each mask.

        Raises:
            ValueError: naming a text without a mask.
        """
        refuse_without_mask(texts, self._masks)
        answers = self._asked("fill_mask", texts)
        return [_text(one) for given in answers for one in given["filled"].numpy()]

    def labels(self, texts: Sequence[str]) -> list[str]:
        """The likeliest label of each text."""
        answers = self._asked("classify", texts)
        return [_text(label) for given in answers for label in given["label"].numpy()]

    def tags(self, texts: Sequence[str]) -> list[list[str]]:
        """The tags of each text's words, which stand between white space."""
        answers = self._asked("tag", texts)
        rows = [row for given in answers for row in given["tags"].numpy()]
        return [[_text(tag) for tag in row if tag] for row in rows]

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of length 1, (texts, d_model): the product of two is the cosine."""
        return np.concatenate([one["vector"].numpy() for one in self._asked("embed", texts)])

    def search(self, queries: Sequence[str], texts: Sequence[str], count: int) -> np.ndarray:
        """The numbers of the texts nearest to each query, the nearest first, (queries, count)."""
        cosines = self.vectors(queries) @ self.vectors(texts).T
        return np.argsort(-cosines, axis=1, kind="stable")[:, :count]

    def _asked(self, name, texts):
        if name not in self._functions:
            raise ValueError(
                f"{self._name} has no {name}. Received: a model with "
                f"{', '.join(sorted(self._functions))}. Name a model of the task that has it."
            )
        for start in range(0, len(texts), TEXTS_A_CALL):
            given = tf.constant(list(texts[start : start + TEXTS_A_CALL]))
            yield self._functions[name](text=given)


def masks_of(version: pathlib.Path) -> Sequence[str]:
    """What hides a word in the texts of a SavedModel: the one that its card names, else `MASKS`."""
    card = read_card(version)
    return [card["mask"]] if "mask" in card else MASKS


def refuse_without_mask(texts: Sequence[str], masks: Sequence[str]) -> None:
    """Raise ValueError, naming the first text without one of the masks."""
    for number, text in enumerate(texts, start=1):
        if not any(mask in text for mask in masks):
            raise ValueError(
                f"every text must have a mask, {' or '.join(masks)}, in place of a word. "
                f"Received: text {number}, {text!r}. Write one there."
            )


def _text(value):
    return value.decode(errors="replace")


def _by_piece(pieces, probabilities):
    pairs = zip(pieces, probabilities, strict=True)
    return {_text(piece): float(probability) for piece, probability in pairs}
