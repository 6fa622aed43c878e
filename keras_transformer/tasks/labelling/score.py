"""How the labels and the tags that a model gives to held-out texts are scored."""

import functools

from keras_transformer.evaluation import label_score, span_score
from keras_transformer.inference.held_out_text import held_out_text
from keras_transformer.inference.loading import refuse_precision
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks.score import Scorer
from pipelines.batches import labelled_texts
from pipelines.corpora.parallel_text import Origin, ParallelText
from pipelines.dropped import Dropped


class LabelScorer(Scorer):
    """The texts of a split; or those of --source_file, whose labels --reference_file has."""

    useless = ("metrics", "confidence", "baseline_file", "evalb_parameters")
    because = "is for translations, and {model} gives labels: leave it out."

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        self._dropped = Dropped()
        self._text = self._labelled(values)
        place = functools.partial(self._text.place, side="the text")
        self.check(self._text, description["labels"]["names"], place)

    def examine(self, loading, at_once):
        if version := ModelPath.of(self.model).version:
            refuse_precision(version, loading["precision"])
            reader = TextReader.load(self.model)
        else:
            reader = TextReader.of(self.module(loading["precision"]))
        return self.measure(reader, self._text)[1]

    @staticmethod
    def check(text, names, place):
        """Refuse labels that the model cannot give."""
        labelled_texts.numbers_of(text.targets, names, place)

    @staticmethod
    def usable(corpus):
        """A corpus without what the task drops."""
        return corpus

    @staticmethod
    def measure(reader, text):
        """What a `TextReader` answers to a text, and how good it is."""
        labels = reader.labels(text.sources)
        return labels, label_score.measure(labels, text.targets)

    @staticmethod
    def summary(numbers):
        """What `measure` gave, for people."""
        accuracy = f"accuracy {numbers['accuracy']:.1%}, macro F1 {numbers['macro_f1']}"
        return f"{numbers['texts']:,} texts\n{accuracy}"

    def table(self, numbers):
        dropped = any(self._dropped.values())
        left_out = [f"dropped of all splits: {self._dropped.describe()}"] if dropped else []
        return "\n".join([self.summary(numbers), *left_out])

    def _labelled(self, values):
        """Texts and their labels."""
        files = [values["source_file"], values["reference_file"]]
        if any(files):
            texts, labels = held_out_text(self.description, self.model, values["split"], *files)
            return ParallelText(texts, labels, (Origin(files[1], range(1, len(texts) + 1)),))
        whole = self.corpus("texts and labels by --source_file and --reference_file")
        corpus = self.usable(whole)
        self._dropped = Dropped(corpus.dropped)
        self._dropped.subtract(whole.dropped)
        return getattr(corpus, values["split"])


class TagScorer(LabelScorer):
    """Likewise; a line of labels has a tag for each word."""

    summary = staticmethod(span_score.summary)
    usable = staticmethod(labelled_texts.without_unequal)

    @staticmethod
    def check(text, names, place):
        labelled_texts.check_tags(text.sources, text.targets, names, place)

    @staticmethod
    def measure(reader, text):
        tags = reader.tags(text.sources)
        return tags, span_score.measure(tags, [row.split() for row in text.targets])
