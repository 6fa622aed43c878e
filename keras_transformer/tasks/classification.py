"""Classification of texts: an encoder-only model, fine-tuned from one that guesses hidden pieces,
or from nothing (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding", section 4.1).
"""

import json

import numpy as np

from keras_transformer.artifacts.text_encoder_artifact import LabelArtifact
from keras_transformer.evaluation import label_score
from keras_transformer.models import TextClassifier, described, translation_policy
from keras_transformer.models.text_encoder import BODY
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.task import Evaluation
from keras_transformer.tasks.text_reading import TextReading
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.translator.text_encoder_module import LabelModule
from keras_transformer.translator.text_reader import TextReader
from pipelines import labelled_texts, vocabularies
from pipelines.whole_files import write_json

SHOWN = 5
KEPT_EXAMPLES = 12
LABELS_FILE = "labels.json"


class Classification(TextReading):
    """Learn the targets of a corpus as labels of its sources: the intents of `--corpus=intents`, or
    any files of `--corpus=text_files`, a text and a label a line.

    `--init_from` takes embeddings and encoder from a run of the task masking, whose head it leaves.
    """

    name = "classification"
    flag_groups = TASKS["classification"].flag_groups
    export_flag_groups = TASKS["classification"].export_flag_groups
    labels = "texts"
    carried_over = BODY

    def write_files(self, folder):
        """Write the vocabulary, and the labels of the training side."""
        super().write_files(folder)
        write_json(folder.path / LABELS_FILE, sorted(set(self.corpus.train.targets)))

    def read_files(self, folder):
        super().read_files(folder)
        self.names = _names(folder)

    def description(self):
        description = super().description()
        description["labels"] = {"names": self.names, "pooling": self.values["pooling"]}
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
        return self._examples(
            [train.sources[number] for number in drawn],
            [train.targets[number] for number in drawn],
            "the training side",
        )

    def validation_examples(self):
        valid = self.corpus.valid
        return self._examples(valid.sources, valid.targets, "the validation side")

    def _examples(self, sources, targets, split):
        longest = self.values["max_train_length"]
        numbers = labelled_texts.numbers_of(targets, self.names, split)
        ids = labelled_texts.tokenized(sources, self.vocabulary, longest)
        return labelled_texts.examples(ids, numbers, self.vocabulary)

    def model(self, dtype):
        pooling = self.values["pooling"]
        return TextClassifier(self.hyperparameters, len(self.names), pooling, dtype)

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def artifact(self, model):
        return LabelArtifact(LabelModule(model, self.vocabulary, self.names))

    @classmethod
    def reload(cls, folder, values):
        description = folder.read_description()
        hyperparameters = described(description["hyperparameters"])
        names = _names(folder)
        policy = translation_policy(values["precision"])
        pooling = description["labels"]["pooling"]
        model = TextClassifier(hyperparameters, len(names), pooling, policy)
        folder.load_weights(model)
        vocabulary = vocabularies.load(folder.path).source
        return LabelArtifact(LabelModule(model, vocabulary, names))

    def evaluate(self, artifact):
        """Accuracy on the test set, and the labels that are confused most."""
        test = self.corpus.test
        labelled_texts.numbers_of(test.targets, self.names, "the test side")
        found = TextReader.of(artifact.module).labels(test.sources)
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

    def usage(self, version):
        return f"  python -m keras_transformer.serve --model_base_path={version.parent}"


def _names(folder):
    return json.loads((folder.path / LABELS_FILE).read_text(encoding="utf-8"))
