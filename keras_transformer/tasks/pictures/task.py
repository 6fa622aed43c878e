"""Classes of pictures, by a Vision Transformer (Dosovitskiy et al. 2021, "An Image is Worth 16x16
Words: Transformers for Image Recognition at Scale").
"""

import functools
import os

import numpy as np

from keras_transformer.evaluation import confusion
from keras_transformer.inference.picture_classifier import TASK, PictureClassifier
from keras_transformer.models import VisionHyperparameters
from keras_transformer.tasks.pictures.module import PictureModule
from keras_transformer.tasks.pictures.score import PictureScorer, scores_of
from keras_transformer.tasks.task import Score, Task
from pipelines.batches import picture_files, shifted_pictures
from pipelines.corpora import images
from pipelines.dropped import Dropped

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
        """What the flags and the pictures say."""
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
        """All of it. Where an earlier version wrote no digest of files, today's is taken."""
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
        for done, some in (
            ("dropped", pictures.dropped),
            ("passed over", Dropped(pictures.passed_over)),
        ):
            if some:
                print(f"{done}: {some.describe()}")

    def examples(self, split):
        tokens = self.hyperparameters.tokens
        if split == "valid":
            return shifted_pictures.examples(self.pictures.valid, tokens)
        most = self.values["shift"]
        return shifted_pictures.examples(self.pictures.train, tokens, most, self.values["seed"])

    def score(self, module):
        """Accuracy on the test set, and which class was taken for which."""
        test = self.pictures.test
        numbers = scores_of(PictureClassifier.of(module), test)
        report = [
            f"{numbers['accuracy']:.2%} of {numbers['pictures']:,} pictures are told rightly",
            confusion.as_text(numbers.pop("confusion"), self.pictures.classes),
        ]
        return Score(numbers, report, test.pixels[:KEPT].tolist())
