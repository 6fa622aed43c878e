"""Classes of pictures, by a Vision Transformer (Dosovitskiy et al. 2021, "An Image is Worth 16x16
Words: Transformers for Image Recognition at Scale").
"""

import functools
import os

import numpy as np

from keras_transformer.evaluation import confusion
from keras_transformer.inference.picture_classifier import TASK, PictureClassifier
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from keras_transformer.tasks.pictures.module import PictureModule
from keras_transformer.tasks.pictures.score import scores_of
from keras_transformer.tasks.task import Evaluation, Task
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines.batches import picture_files, shifted_pictures
from pipelines.corpora import images
from pipelines.dropped import Dropped

KEPT_EXAMPLES = 8


class ImageClassification(Task):
    """Tell the class of a picture, of a set of `pipelines.corpora.images`."""

    name = TASK
    labels = "pictures"

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
        """All of it. An earlier version did not write the digest of a folder's files: that of today
        is taken.
        """
        name, folder = (description["pictures"].get(key) for key in ("name", "folder"))
        if "files" in description or name != "folder" or not os.path.isdir(folder):
            return description
        return {**description, "files": {"digest": picture_files.digest(folder)}}

    def introduce(self):
        found = self.pictures
        sizes = [f"{len(split):,}" for split in (found.train, found.valid, found.test)]
        rows, columns = self.hyperparameters.grid
        print(
            f"{found.name}: {sizes[0]} pictures to train, {sizes[1]} to validate, {sizes[2]} to "
            f"test, {len(found.classes)} classes, {rows} x {columns} patches"
        )
        counts = np.bincount(found.train.classes, minlength=len(found.classes))
        print(f"the rarest class, {found.classes[counts.argmin()]}: {counts.min():,} to train")
        for done, some in (("dropped", found.dropped), ("passed over", Dropped(found.passed_over))):
            if some:
                print(f"{done}: {some.describe()}")

    def examples(self):
        most = self.values["shift"]
        tokens = self.hyperparameters.tokens
        return shifted_pictures.examples(self.pictures.train, tokens, most, self.values["seed"])

    def validation_examples(self):
        return shifted_pictures.examples(self.pictures.valid, self.hyperparameters.tokens)

    def model(self, dtype):
        return VisionTransformer(self.hyperparameters, dtype=dtype)

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def module(self, model):
        return PictureModule(model, self.pictures.classes)

    @classmethod
    def reload(cls, folder, values):
        return PictureModule.of_run(folder, "float32", values)

    def evaluate(self, module):
        """Accuracy on the test set, and which class was taken for which."""
        test = self.pictures.test
        classes = self.pictures.classes
        found = scores_of(PictureClassifier.of(module), test)
        report = [
            f"{found['accuracy']:.2%} of {found['pictures']:,} pictures are told rightly",
            confusion.as_text(found["confusion"], classes),
        ]
        scores = {name: found[name] for name in ("accuracy", "pictures")}
        return Evaluation(scores, report, test.pixels[:KEPT_EXAMPLES].tolist())

    def usage(self, version):
        return f"  python -m keras_transformer.serve --model_base_path={version.parent}"
