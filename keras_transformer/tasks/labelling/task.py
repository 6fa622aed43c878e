"""Labels of texts and tags of their words, by an encoder-only model, fine-tuned from one that
predicts masked pieces, or from nothing (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", sections 4.1 and 5.3).
"""

import abc
import collections
import functools
import json

import numpy as np

from keras_transformer.evaluation import label_score, span_score
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.models import (
    TextClassifier,
    TokenClassifier,
    sizes_of_description,
    translation_policy,
)
from keras_transformer.models.text_encoders import BODY
from keras_transformer.tasks.labelling.module import LabelModule, TagModule
from keras_transformer.tasks.task import Evaluation
from keras_transformer.tasks.text_task import TextReading, trial
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines import vocabularies
from pipelines.batches import labelled_texts
from pipelines.whole_files import write_json

LABELS_FILE = "labels.json"
SHOWN = 5
KEPT_EXAMPLES = 12


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


class Classification(Labelling):
    """Learn a label for a text: the intents of `--corpus=intents`, or any files of
    `--corpus=text_files`, a text and a label a line.
    """

    name = "classification"
    labels = "texts"

    def check(self, sources, targets, place):
        labelled_texts.numbers_of(targets, self.names, place)

    def labelled(self, sources, targets, place):
        longest = self.values["max_train_length"]
        numbers = labelled_texts.numbers_of(targets, self.names, place)
        ids = labelled_texts.tokenized(sources, self.vocabulary, longest)
        return labelled_texts.examples(ids, numbers, self.vocabulary)

    def description(self):
        description = super().description()
        description["labels"]["pooling"] = self.values["pooling"]
        return description

    def model(self, dtype):
        pooling = self.values["pooling"]
        return TextClassifier(self.hyperparameters, len(self.names), pooling, dtype)

    def module(self, model):
        return LabelModule(model, self.vocabulary, self.names)

    @classmethod
    def reload(cls, folder, values):
        description = folder.read_description()
        hyperparameters = folder.read_hyperparameters(sizes_of_description)
        names = names_of(folder)
        policy = translation_policy(values["precision"])
        pooling = description["labels"]["pooling"]
        model = TextClassifier(hyperparameters, len(names), pooling, policy)
        folder.load_weights(model)
        vocabulary = vocabularies.load(folder.path).source
        return LabelModule(model, vocabulary, names)

    def evaluate(self, module):
        """Accuracy on the test set, and the labels that are confused most."""
        test = self.corpus.test
        found = TextReader.of(module).labels(test.sources)
        measured = label_score.measure(found, test.targets)
        shown = list(zip(test.sources, found, test.targets, strict=True))[:SHOWN]
        report = [
            f"{measured['accuracy']:.1%} of {measured['texts']:,} texts get their label, macro F1 "
            f"{measured['macro_f1']}",
            *(
                f"\n  text       {text}\n  label      {label}\n  reference  {target}"
                for text, label, target in shown
            ),
        ]
        return Evaluation(measured, report, list(test.sources[:KEPT_EXAMPLES]))


class Tagging(Labelling):
    """Learn a tag for each word: the slots of `--corpus=intents --target_language=slots`, or any
    files of `--corpus=text_files`, a text a line, and as many tags a line as it has words. Tags are
    "B-" and a name where a span begins, "I-" and the name where it continues, else "O".
    """

    name = "tagging"
    labels = "words"
    kind_of_labels = "tags"

    @functools.cached_property
    def corpus(self):
        """The text, without lines that have not a tag for each word."""
        return labelled_texts.without_unequal(super().corpus, self.values.get("strict", False))

    @staticmethod
    def labels_in(target):
        return target.split()

    @staticmethod
    def labels_of(targets):
        tags = {tag for row in targets for tag in row.split()}
        # A span of one word and one of several may stand in different splits.
        return tags | {f"{kind}{tag[1:]}" for tag in tags if tag[1:2] == "-" for kind in "BI"}

    def check(self, sources, targets, place):
        labelled_texts.check_tags(sources, targets, self.names, place)

    def labelled(self, sources, targets, place):
        longest = self.values["max_train_length"]
        return labelled_texts.tagged_examples(
            sources, targets, self.names, self.vocabulary, longest, place
        )

    def model(self, dtype):
        return TokenClassifier(self.hyperparameters, len(self.names), dtype)

    def module(self, model):
        return TagModule(model, self.vocabulary, self.names)

    @classmethod
    def reload(cls, folder, values):
        hyperparameters = folder.read_hyperparameters(sizes_of_description)
        names = names_of(folder)
        model = TokenClassifier(
            hyperparameters, len(names), translation_policy(values["precision"])
        )
        folder.load_weights(model)
        return TagModule(model, vocabularies.load(folder.path).source, names)

    def evaluate(self, module):
        """F1 of the spans of the test set, and some of its texts."""
        test = self.corpus.test
        found = TextReader.of(module).tags(test.sources)
        measured = span_score.measure(found, [row.split() for row in test.targets])
        shown = list(zip(test.sources, found, test.targets, strict=True))[:SHOWN]
        report = [
            span_score.summary(measured),
            *(
                f"\n  text       {text}\n  tags       {' '.join(tags)}\n  reference  {row}"
                for text, tags, row in shown
            ),
        ]
        return Evaluation(measured, report, list(test.sources[:KEPT_EXAMPLES]))
