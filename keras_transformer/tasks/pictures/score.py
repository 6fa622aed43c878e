"""How well the classes of pictures are predicted."""

import numpy as np

from keras_transformer.evaluation import confusion
from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.tasks.score import OF_ANSWERS, Scorer
from pipelines.corpora import images
from pipelines.corpora.images import Split


class PictureScorer(Scorer):
    """The pictures of a split."""

    useless = (*OF_ANSWERS, "reference_file")
    because = (
        "is for text, and {model} gives pictures classes. Leave it out; --split names the pictures."
    )

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        if "pictures" not in description:
            raise ValueError(
                f"{model} does not say what pictures it was trained on. Name a run of "
                "--task=image_classification, or what it was exported to."
            )
        pictures = images.load(**description["pictures"])
        _refuse_others(description, pictures, model)
        self._split = getattr(pictures, values["split"])
        self._dropped = pictures.dropped

    def examine(self, loading, at_once):
        if loading["precision"] != "float32":
            raise ValueError(
                f"--precision={loading['precision']}: models of pictures compute in float32. Leave "
                "it out."
            )
        numbers = scores_of(PictureClassifier.load(self.model), self._split)
        return {**numbers, "classes": self.description["classes"]["names"]}

    def table(self, numbers):
        left_out = f", dropped of all splits: {self._dropped.describe()}" if self._dropped else ""
        return (
            f"{numbers['pictures']:,} pictures, accuracy {numbers['accuracy']:.2%}{left_out}\n\n"
            f"{confusion.as_text(numbers['confusion'], numbers['classes'])}"
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

    Returns:
        "pictures", how many; "accuracy", a share; and "confusion", a list of rows: how many of
        class i were taken for j.
    """
    _, probabilities = classifier.classify(split.pixels)
    predicted = np.argmax(probabilities, axis=-1)
    counts = confusion.confusion(split.classes, predicted, len(classifier.classes))
    return {
        "pictures": len(split),
        "accuracy": round(confusion.accuracy(counts), 4),
        "confusion": counts.tolist(),
    }
