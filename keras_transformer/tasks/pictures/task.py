"""Classes of pictures, by a Vision Transformer (Dosovitskiy et al. 2021, "An Image is Worth 16x16
Words: Transformers for Image Recognition at Scale").
"""

import functools
import os

import numpy as np

from keras_transformer.evaluation import label_score
from keras_transformer.inference.picture_classifier import TASK, PictureClassifier
from keras_transformer.models import VisionHyperparameters
from keras_transformer.tasks.pictures.module import PictureModule
from keras_transformer.tasks.score import OF_ANSWERS, Scorer
from keras_transformer.tasks.task import Score, Task
from pipelines.batches import picture_files, shifted_pictures
from pipelines.corpora import images
from pipelines.corpora.images import Split
from pipelines.dropped import Dropped


class PictureScorer(Scorer):
    """Scores classes of the pictures of a split."""

    useless = (*OF_ANSWERS, "reference_file")
    because = (
        "is for text, and {model} gives pictures classes. Leave it out; --split names the pictures."
    )

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        if (precision := values.get("precision", "float32")) != "float32":
            raise ValueError(
                f"--precision={precision}: models of pictures compute in float32. Leave it out."
            )
        if "pictures" not in description:
            raise ValueError(
                f"{model} does not say what pictures it was trained on. Name a run of "
                "--task=image_classification, or what it was exported to."
            )
        pictures = images.load(**description["pictures"])
        _refuse_changed(description, pictures, model)
        self._split = getattr(pictures, values["split"])
        self._dropped = pictures.dropped

    def examine(self, loading, at_once):
        numbers = scores_of(PictureClassifier.load(self.model), self._split)
        return {**numbers, "classes": self.description["classes"]["names"]}

    def table(self, numbers):
        left_out = f", dropped of all splits: {self._dropped.describe()}" if self._dropped else ""
        return (
            f"{numbers['pictures']:,} pictures, accuracy {numbers['accuracy']:.2%}{left_out}\n\n"
            f"{label_score.confusion_as_text(numbers['confusion'], numbers['classes'])}"
        )


def _refuse_changed(description, pictures, model):
    """Refuse a folder that has changed since the training. Its splits would differ, and the test
    would include pictures that were trained on.
    """
    folder = description["pictures"]["folder"]
    names = description["classes"]["names"]
    if names != list(pictures.classes):
        raise ValueError(
            f"{folder or pictures.name} must have the classes that {model} was trained on, "
            f"{', '.join(names)}. Received: {', '.join(pictures.classes)}. Put the subfolders back "
            "as they were, or train again."
        )
    # An earlier version did not write the digest.
    digest = description.get("files", {}).get("digest", pictures.digest)
    if digest != pictures.digest:
        raise ValueError(
            f"{folder} must have the files that {model} was trained with, for their names decide "
            "which pictures are tested. Received: files of other names. Put them back as they "
            "were, or train again."
        )


def scores_of(classifier: PictureClassifier, split: Split) -> dict:
    """Classify all pictures of a split. Return their number, the accuracy, and "confusion", rows of
    how many pictures of class i were predicted to be of class j.
    """
    _, probabilities = classifier.classify(split.pixels)
    predicted = np.argmax(probabilities, axis=-1)
    counts = label_score.confusion(split.classes, predicted, len(classifier.classes))
    return {
        "pictures": len(split),
        "accuracy": round(label_score.accuracy(counts), 4),
        "confusion": counts.tolist(),
    }


KEPT = 8


class ImageClassification(Task):
    """Tell the class of a picture, of a set of `pipelines.corpora.images`."""

    name = TASK
    labels = "pictures"
    trial = "python -m keras_transformer.serve --model_base_path={versions}"
    scorer = PictureScorer
    module_class = PictureModule

    def __init__(self, values):
        super().__init__(values)
        folder = values["pictures_dir"]
        self._settings = {
            "name": values["pictures"],
            "folder": os.path.abspath(os.path.expanduser(folder)) if folder else None,
        }
        most = values["shift"]
        _, height, width, _ = self.pictures.train.pixels.shape
        if most >= min(height, width):
            raise ValueError(
                f"--shift must be below the {min(height, width)} pixels of a picture. Received: "
                f"--shift={most}. Try --shift=2."
            )

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{cls.name}_{values['pictures']}"

    @functools.cached_property
    def pictures(self):
        """The set: `images.Pictures`."""
        return images.load(**self._settings, strict=self.values["strict"])

    @functools.cached_property
    def hyperparameters(self):
        """The sizes of the model, from flags and pictures."""
        _, height, width, channels = self.pictures.train.pixels.shape
        of_pictures = {"height": height, "width": width, "channels": channels}
        classes = len(self.pictures.classes)
        return VisionHyperparameters.of({**self.values, **of_pictures, "classes": classes})

    @property
    def width(self):
        return self.hyperparameters.d_model

    def description(self):
        digest = self.pictures.digest
        return {
            "hyperparameters": self.hyperparameters.as_dict(),
            "pictures": self._settings,
            **({"files": {"digest": digest}} if digest else {}),
            "classes": {"names": list(self.pictures.classes)},
            "training": {"shift": self.values["shift"]},
        }

    @classmethod
    def fixed(cls, description):
        """Return all of it. If an earlier version wrote no digest of the files, add today's."""
        name, folder = (description["pictures"].get(key) for key in ("name", "folder"))
        if "files" in description or name != "folder" or not os.path.isdir(folder):
            return description
        return {**description, "files": {"digest": picture_files.digest(folder)}}

    def introduce(self):
        pictures = self.pictures
        sizes = [f"{len(split):,}" for split in (pictures.train, pictures.valid, pictures.test)]
        rows, columns = self.hyperparameters.grid
        print(
            f"{pictures.name}: {sizes[0]} pictures to train, {sizes[1]} to validate, {sizes[2]} to "
            f"test, {len(pictures.classes)} classes, {rows} x {columns} patches"
        )
        counts = np.bincount(pictures.train.classes, minlength=len(pictures.classes))
        print(f"the rarest class, {pictures.classes[counts.argmin()]}: {counts.min():,} to train")
        if pictures.dropped:
            print(f"dropped: {pictures.dropped.describe()}")
        if passed_over := Dropped(pictures.passed_over):
            print(f"passed over: {passed_over.describe()}")

    def examples(self, split):
        tokens = self.hyperparameters.tokens
        if split == "valid":
            return shifted_pictures.examples(self.pictures.valid, tokens)
        most = self.values["shift"]
        return shifted_pictures.examples(self.pictures.train, tokens, most, self.values["seed"])

    def score(self, module):
        """Measure the accuracy on the test set, and the confusion of classes."""
        test = self.pictures.test
        numbers = scores_of(PictureClassifier.of(module), test)
        report = [
            f"{numbers['accuracy']:.2%} of {numbers['pictures']:,} pictures are told rightly",
            label_score.confusion_as_text(numbers.pop("confusion"), self.pictures.classes),
        ]
        return Score(numbers, report, test.pixels[:KEPT].tolist())
