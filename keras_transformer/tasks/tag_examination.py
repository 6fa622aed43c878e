"""How many spans a tagger finds in texts that it has not seen."""

from keras_transformer.evaluation import span_score
from keras_transformer.tasks.label_examination import LabelExamination
from keras_transformer.tasks.tagging import Tagging
from pipelines.batches import labelled_words


class TagExamination(LabelExamination):
    """The texts of a split; or those of --source_file, whose tags --reference_file has."""

    task = Tagging

    @staticmethod
    def check(text, names, place):
        labelled_words.check(text.sources, text.targets, names, place)

    @staticmethod
    def usable(corpus):
        return labelled_words.without_unequal(corpus)

    @staticmethod
    def compare(reader, texts, labels):
        return span_score.measure(reader.tags(texts), [row.split() for row in labels])

    def table(self, found):
        return "\n".join([span_score.summary(found), *self.left_out()])
