"""How many spans a tagger finds in texts that it has not seen."""

from keras_transformer.evaluation import span_score
from keras_transformer.tasks.label_examination import LabelExamination
from keras_transformer.tasks.tagging import Tagging
from pipelines import labelled_words
from pipelines.labelled_texts import numbers_of


class TagExamination(LabelExamination):
    """The texts of a split; or those of --source_file, whose tags --reference_file has."""

    task = Tagging

    @staticmethod
    def check(texts, labels, names):
        labelled_words.check(texts, labels, "the text")
        numbers_of(" ".join(labels).split(), names, "the text")

    @staticmethod
    def compare(reader, texts, labels):
        return span_score.measure(reader.tags(texts), [row.split() for row in labels])

    def table(self, found):
        return span_score.summary(found)
