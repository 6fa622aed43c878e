"""How well the classes of pictures are predicted."""

import numpy as np

from keras_transformer.evaluation import confusion
from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.tasks.score import Examination
from pipelines.corpora import images
from pipelines.corpora.images import Split

# Flags of `evaluate` that are for text.
OF_TEXT = (
    *("metrics", "confidence", "baseline_file", "source_file", "reference_file"),
    "evalb_parameters",
)


class PictureExamination(Examination):
    """The pictures of a split."""

    def __init__(self, description, model, values):
        if given := [name for name in OF_TEXT if values[name]]:
            raise ValueError(
                f"--{given[0]} is for text, and {model} gives pictures classes. Leave it out; "
                "--split names the pictures."
            )
        if "pictures" not in description:
            raise ValueError(
                f"{model} does not say what pictures it was trained on. Name a run of "
                "--task=image_classification, or what it was exported to."
            )
        self._model = model
        pictures = images.load(**description["pictures"])
        _refuse_others(description, pictures, model)
        self._split = getattr(pictures, values["split"])
        self._dropped = pictures.dropped
        self._classes = description["classes"]["names"]

    def examine(self, loading, at_once):
        if loading["precision"] != "float32":
            raise ValueError(
                f"--precision={loading['precision']}: models of pictures compute in float32. Leave "
                "it out."
            )
        found = scores_of(PictureClassifier.load(self._model), self._split)
        return {**found, "classes": self._classes}

    def table(self, found):
        left_out = f", dropped of all splits: {self._dropped.describe()}" if self._dropped else ""
        return (
            f"{found['pictures']:,} pictures, accuracy {found['accuracy']:.2%}{left_out}\n\n"
            f"{confusion.as_text(found['confusion'], found['classes'])}"
        )


def _refuse_others(description, pictures, model):
    """Refuse a folder that has changed since the training: its splits are others, so that pictures
    that were trained on would be tested.
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
    """Ask for the classes of all pictures of a split.

    Args:
        classifier: what is asked.
        split: pixels and classes.

    Returns:
        "pictures", how many; "accuracy", a share; and "confusion", a list of rows: of class i, told
        as j.
    """
    _, probabilities = classifier.classify(split.pixels)
    told = np.argmax(probabilities, axis=-1)
    counts = confusion.confusion(split.classes, told, len(classifier.classes))
    return {
        "pictures": len(split),
        "accuracy": round(confusion.accuracy(counts), 4),
        "confusion": counts.tolist(),
    }
