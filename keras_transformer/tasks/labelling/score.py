"""How the labels and the tags that a model gives to held-out texts are scored."""

import functools

from keras_transformer.evaluation import label_score, span_score
from keras_transformer.inference.loading import refuse_precision
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks.labelling.task import Classification, Tagging
from keras_transformer.tasks.score import Examination
from pipelines import corpora
from pipelines.batches import labelled_texts
from pipelines.corpora.line_files import read_lines, unequal
from pipelines.corpora.parallel_text import Origin, ParallelText
from pipelines.dropped import Dropped

# Flags of `evaluate` that are for translations.
OF_TRANSLATIONS = ("metrics", "confidence", "baseline_file", "evalb_parameters")


class LabelExamination(Examination):
    """The texts of a split; or those of --source_file, whose labels --reference_file has.

    Attributes:
        task: the class of the task that trained the model.
    """

    task = Classification

    def __init__(self, description, model, values):
        if given := [name for name in OF_TRANSLATIONS if values[name]]:
            raise ValueError(
                f"--{given[0]} is for translations, and {model} gives labels: leave it out."
            )
        self._model = model
        self._dropped = Dropped()
        self._text = self._labelled(description, values)
        place = functools.partial(self._text.place, side="the text")
        self.check(self._text, description["labels"]["names"], place)

    def examine(self, loading, at_once):
        model = ModelPath.of(self._model)
        if model.version:
            refuse_precision(model.version, loading["precision"])
            reader = TextReader.load(self._model)
        else:
            values = {"precision": loading["precision"]}
            reader = TextReader.of(self.task.reload(model.run, values))
        return self.compare(reader, self._text.sources, self._text.targets)

    @staticmethod
    def check(text, names, place):
        """Refuse labels that the model cannot give."""
        labelled_texts.numbers_of(text.targets, names, place)

    @staticmethod
    def usable(corpus):
        """A corpus without what the task drops."""
        return corpus

    def left_out(self):
        """A line for what no figure counts, if there is anything."""
        is_whole = not any(self._dropped.values())
        return [] if is_whole else [f"dropped of all splits: {self._dropped.describe()}"]

    @staticmethod
    def compare(reader, texts, labels):
        """Measure what a `TextReader` gives for texts."""
        return label_score.measure(reader.labels(texts), labels)

    def table(self, found):
        accuracy = f"accuracy {found['accuracy']:.1%}, macro F1 {found['macro_f1']}"
        return "\n".join([f"{found['texts']:,} texts", accuracy, *self.left_out()])

    def _labelled(self, description, values):
        """Texts and their labels."""
        names = [values["source_file"], values["reference_file"]]
        if any(names):
            if not all(names):
                raise ValueError(
                    "--source_file and --reference_file are needed: texts and their labels, line "
                    "by line."
                )
            texts, labels = ([*read_lines(name)] for name in names)
            if len(texts) != len(labels) or not texts:
                raise ValueError(unequal(names, [len(texts), len(labels)]))
            return ParallelText(texts, labels, (Origin(names[1], range(1, len(texts) + 1)),))
        if "corpus" not in description:
            raise ValueError(
                f"{self._model} does not say what it was trained on: pass texts and labels by "
                "--source_file and --reference_file."
            )
        loaded = corpora.load(**description["corpus"])
        corpus = self.usable(loaded)
        self._dropped = Dropped(corpus.dropped)
        self._dropped.subtract(loaded.dropped)
        return getattr(corpus, values["split"])


class TagExamination(LabelExamination):
    """The texts of a split; or those of --source_file, whose tags --reference_file has."""

    task = Tagging

    @staticmethod
    def check(text, names, place):
        labelled_texts.check_tags(text.sources, text.targets, names, place)

    @staticmethod
    def usable(corpus):
        return labelled_texts.without_unequal(corpus)

    @staticmethod
    def compare(reader, texts, labels):
        return span_score.measure(reader.tags(texts), [row.split() for row in labels])

    def table(self, found):
        return "\n".join([span_score.summary(found), *self.left_out()])
