"""Tagging of words by an encoder-only model, which finds spans of them (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding", section 5.3).
"""

import functools

from keras_transformer.evaluation import span_score
from keras_transformer.inference.label_modules import TagModule
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.models import TokenClassifier, described, translation_policy
from keras_transformer.tasks.labelling import Labelling, names_of
from keras_transformer.tasks.task import Evaluation
from pipelines import vocabularies
from pipelines.batches import labelled_words

SHOWN = 5
KEPT_EXAMPLES = 12


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
        return labelled_words.without_unequal(super().corpus, self.values["strict"])

    @staticmethod
    def labels_in(target):
        return target.split()

    @staticmethod
    def labels_of(targets):
        tags = {tag for row in targets for tag in row.split()}
        # A span of one word and one of several may stand in different splits.
        return tags | {f"{kind}{tag[1:]}" for tag in tags if tag[1:2] == "-" for kind in "BI"}

    def check(self, sources, targets, place):
        labelled_words.check(sources, targets, self.names, place)

    def labelled(self, sources, targets, place):
        longest = self.values["max_train_length"]
        return labelled_words.examples(
            sources, targets, self.names, self.vocabulary, longest, place
        )

    def model(self, dtype):
        return TokenClassifier(self.hyperparameters, len(self.names), dtype)

    def module(self, model):
        return TagModule(model, self.vocabulary, self.names)

    @classmethod
    def reload(cls, folder, values):
        hyperparameters = folder.read_hyperparameters(described)
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
