"""Pictures to classes, by a run's Vision Transformer or an exported one."""

import os
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_transformer.inference.loading import description_of, saved_model
from keras_transformer.inference.picture_module import WHITE, PictureModule
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from keras_transformer.runs.folder import RunFolder, run_of
from keras_transformer.runs.task_name import task_of
from keras_transformer.saved_models.session import reason_of, reload

TASK = "image_classification"


class PictureClassifier:
    """Tell classes of pictures, and what the model looked at.

    Args:
        classify: pictures (B, H, W, C), from 0 to 1, to names of classes and probabilities, as
            `PictureModule.classify`.
        attend: pictures to attention, as `PictureModule.attend`.
        classes: names of all classes.

    Example:
        classifier = PictureClassifier.load("runs/image_classification_digits")
        names, probabilities = classifier.classify(pixels)
    """

    def __init__(self, classify: Callable[..., dict], attend: Callable[..., dict], classes: list):
        self._classify = classify
        self._attend = attend
        self.classes = list(classes)

    @classmethod
    def of(cls, module: PictureModule) -> "PictureClassifier":
        """That of a live module."""
        return cls(module.classify, module.attend, module.classes)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "PictureClassifier":
        """Load a model.

        Args:
            path: a run's folder, a checkpoint in one, a SavedModel, or a folder of numbered
                versions of it.

        Raises:
            FileNotFoundError: if there is no model.
            ValueError: if it is damaged, or gives no classes of pictures.
        """
        path = pathlib.Path(path)
        description = description_of(path)
        if (task := task_of(description)) != TASK:
            raise ValueError(
                f"{path} must be a model that gives pictures classes, trained by --task={TASK}. "
                f"Received: one of the task {task}."
            )
        if version := saved_model(path):
            exported = reload(version)
            # Functions of a loaded module forget its variables once it is gone.
            return cls(
                lambda pictures: exported.classify(pictures),
                lambda pictures: exported.attend(pictures),
                description["classes"]["names"],
            )
        is_checkpoint = path.suffix == ".npz"
        folder = run_of(path) if is_checkpoint else RunFolder(path)
        hyperparameters = folder.read_hyperparameters(VisionHyperparameters.of_description)
        model = VisionTransformer(hyperparameters)
        folder.load_weights(model, path if is_checkpoint else None)
        return cls.of(PictureModule(model, description["classes"]["names"]))

    def classify(self, pixels: np.ndarray, at_once: int = 256) -> tuple[list[str], np.ndarray]:
        """Tell the classes of pictures.

        Args:
            pixels: uint8 (n, H, W, C).
            at_once: how many go through the model together.

        Returns:
            The name of the likeliest class of each; and the probabilities of all classes, (n, K).

        Raises:
            ValueError: for pictures of another size.
        """
        names: list[str] = []
        probabilities = []
        for start in range(0, len(pixels), at_once):
            found = _asked(self._classify, pixels[start : start + at_once])
            names += [name.decode() for name in np.asarray(found["class"]).tolist()]
            probabilities.append(np.asarray(found["probabilities"]))
        shape = (0, len(self.classes))
        return names, np.concatenate([np.zeros(shape, np.float32), *probabilities])

    def attention(self, pixels: np.ndarray) -> np.ndarray:
        """What the class token looks at.

        Args:
            pixels: a picture, uint8 (H, W, C).

        Returns:
            The share of each patch, (N, h, H / P, W / P).

        Raises:
            ValueError: for a picture of another size.
        """
        return np.asarray(_asked(self._attend, pixels[None])["attention"])[0]


def _asked(function, pixels):
    try:
        return function(tf.constant(pixels / WHITE, tf.float32))
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(reason_of(error)) from error
