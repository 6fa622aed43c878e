"""Classification of texts by an encoder-only model (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", section 4.1).
"""

from keras_transformer.evaluation import label_score
from keras_transformer.inference.label_modules import LabelModule
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.models import TextClassifier, described, translation_policy
from keras_transformer.tasks.labelling import Labelling, names_of
from keras_transformer.tasks.task import Evaluation
from pipelines import vocabularies
from pipelines.batches import labelled_texts

SHOWN = 5
KEPT_EXAMPLES = 12


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
        hyperparameters = folder.read_hyperparameters(described)
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
