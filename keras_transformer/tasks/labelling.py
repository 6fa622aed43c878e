"""What tasks share that label texts or their words: an encoder-only model, fine-tuned from one that
predicts masked pieces, or from nothing (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", section 4).
"""

import abc
import json

import numpy as np

from keras_transformer.models.text_encoder import BODY
from keras_transformer.tasks.text_reading import TextReading
from keras_transformer.tasks.trial import trial
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines.whole_files import write_json

LABELS_FILE = "labels.json"


class Labelling(TextReading):
    """Learn the targets of a corpus as labels of its sources.

    `--init_from` takes embeddings and encoder from a run of the task masking, whose head it leaves.

    Attributes:
        names: the labels that the training side has, from `labels_of`.
    """

    carried_over = BODY

    def __init__(self, values):
        super().__init__(values)
        if values["tie_embeddings"] != "three_way":
            raise ValueError(
                f"--task={self.name} has one table of embeddings, and none to share it with. "
                f"Received: tie_embeddings={values['tie_embeddings']}. Leave it out."
            )

    @classmethod
    def fixed(cls, description):
        """All but `tie_embeddings`, which an earlier version took though it has no effect."""
        hyperparameters = {**description["hyperparameters"], "tie_embeddings": "three_way"}
        return super().fixed({**description, "hyperparameters": hyperparameters})

    @staticmethod
    @abc.abstractmethod
    def labels_of(targets):
        """All labels in the lines of the targets."""

    @abc.abstractmethod
    def labelled(self, sources, targets, split):
        """Lines and their targets as `Examples`."""

    @abc.abstractmethod
    def check(self, sources, targets, split):
        """Refuse targets that the training side has not, and others that cannot be learned."""

    def introduce(self):
        """Print what is trained on; what could not be measured later is refused now."""
        for side, of in ((self.corpus.valid, "validation"), (self.corpus.test, "test")):
            self.check(side.sources, side.targets, f"the {of} side")
        super().introduce()

    def write_files(self, folder):
        """Write the vocabulary, and the labels of the training side."""
        super().write_files(folder)
        write_json(folder.path / LABELS_FILE, sorted(self.labels_of(self.corpus.train.targets)))

    def read_files(self, folder):
        super().read_files(folder)
        self.names = names_of(folder)

    def description(self):
        description = super().description()
        description["labels"] = {"names": self.names}
        description["training"]["labelled_examples"] = self.values["labelled_examples"]
        return description

    def examples(self):
        train = self.corpus.train
        count = self.values["labelled_examples"] or len(train)
        if count > len(train):
            raise ValueError(
                f"--labelled_examples must be at most {len(train)}, the texts to train on. "
                f"Received: {count}."
            )
        drawn = np.random.default_rng(self.values["seed"]).permutation(len(train))[:count]
        return self.labelled(
            [train.sources[number] for number in drawn],
            [train.targets[number] for number in drawn],
            "the training side",
        )

    def validation_examples(self):
        valid = self.corpus.valid
        return self.labelled(valid.sources, valid.targets, "the validation side")

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def usage(self, version):
        return trial(self.corpus.test.sources[0], "predict", version)


def names_of(folder):
    """The labels of a run, by number."""
    return json.loads((folder.path / LABELS_FILE).read_text(encoding="utf-8"))
