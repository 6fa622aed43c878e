"""What tasks share that label texts or their words: an encoder-only model, fine-tuned from one that
predicts masked pieces, or from nothing (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", section 4).
"""

import abc
import collections
import functools
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
        kind_of_labels: what they are called.
    """

    kind_of_labels = "labels"
    carried_over = BODY

    @classmethod
    def fixed(cls, description):
        """All but `tie_embeddings`, which an earlier version took though it has no effect."""
        hyperparameters = {**description["hyperparameters"], "tie_embeddings": "three_way"}
        return super().fixed({**description, "hyperparameters": hyperparameters})

    @staticmethod
    def labels_in(target):
        """The labels in a line of the targets."""
        return [target]

    @staticmethod
    def labels_of(targets):
        """All labels that lines of the targets, or others like them, may have."""
        return set(targets)

    @abc.abstractmethod
    def labelled(self, sources, targets, place):
        """Lines and their targets as `Examples`; `place` says where one stands, for errors."""

    @abc.abstractmethod
    def check(self, sources, targets, place):
        """Refuse targets that the training side has not, and others that cannot be learned."""

    def introduce(self):
        """Print what is trained on; what could not be measured later is refused now."""
        corpus = self.corpus
        for text, of in (
            (corpus.train, "training"),
            (corpus.valid, "validation"),
            (corpus.test, "test"),
        ):
            place = functools.partial(text.place, side=f"the {of} side")
            self.check(text.sources, text.targets, place)
        super().introduce()
        counts = collections.Counter(
            label for target in corpus.train.targets for label in self.labels_in(target)
        )
        rarest, count = min(counts.items(), key=lambda pair: (pair[1], pair[0]))
        print(
            f"{len(self.names)} {self.kind_of_labels}, the rarest {rarest}: {count:,} of "
            f"{counts.total():,} {self.labels} to train"
        )

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
            lambda index: train.place(drawn[index], "the training side"),
        )

    def validation_examples(self):
        valid = self.corpus.valid
        place = functools.partial(valid.place, side="the validation side")
        return self.labelled(valid.sources, valid.targets, place)

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def usage(self, version):
        return trial(self.corpus.test.sources[0], "predict", version)


def names_of(folder):
    """The labels of a run, by number."""
    return json.loads((folder.path / LABELS_FILE).read_text(encoding="utf-8"))
