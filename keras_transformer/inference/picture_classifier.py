"""Classify pictures by a run's Vision Transformer or an exported one."""

import os

import numpy as np
import tensorflow as tf

from keras_transformer.inference.functions import Functions, LiveFunctions, saved_functions
from keras_transformer.inference.loading import module_of_run, refuse_other_task
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tensorflow_errors import reason_of

TASK = "image_classification"
WHITE = 255.0


class PictureClassifier:
    """Classify pictures, and show where the model looked.

    Attributes:
        classes: names of all classes.

    Example:
        classifier = PictureClassifier.load("runs/image_classification_digits")
        names, probabilities = classifier.classify(pixels)
    """

    def __init__(self, functions: Functions):
        self._functions = functions
        self.classes: list[str] = list(functions.facts["classes"]["names"])

    @classmethod
    def of(cls, module) -> "PictureClassifier":
        """Return the classifier of a live `PictureModule`."""
        return cls(LiveFunctions(module))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "PictureClassifier":
        """Load a run's folder, a checkpoint in one, or a SavedModel."""
        model = ModelPath.of(path)
        refuse_other_task(model.describe(), model.path, TASK)
        if model.version is None:
            return cls.of(module_of_run(model.run, {}))
        return cls(saved_functions(model))

    def classify(self, pixels: np.ndarray, most: int = 2**18) -> tuple[list[str], np.ndarray]:
        """Return the likeliest class of each picture, and the probabilities of all classes, (n, K).
        `pixels` are uint8 (n, H, W, C); a batch has one picture, or at most `most` pixels.
        """
        batch = max(1, most // (pixels.shape[1] * pixels.shape[2]))
        names: list[str] = []
        probabilities = [np.zeros((0, len(self.classes)), np.float32)]
        for start in range(0, len(pixels), batch):
            answer = self._answer("classify", pixels[start : start + batch])
            names += [name.decode() for name in answer["class"].tolist()]
            probabilities.append(answer["probabilities"])
        return names, np.concatenate(probabilities)

    def attention(self, pixels: np.ndarray) -> np.ndarray:
        """Return the class token's attention (N, h, H / P, W / P) to a picture, uint8 (H, W, C)."""
        return self._answer("attend", pixels[None])["attention"][0]

    def _answer(self, name, pixels):
        try:
            return self._functions[name](picture=np.asarray(pixels / WHITE, np.float32))
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(reason_of(error)) from error
