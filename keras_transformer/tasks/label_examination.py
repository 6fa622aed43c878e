"""The accuracy of a classifier on texts that it has not seen."""

from keras_transformer.evaluation import label_score
from keras_transformer.runs.folder import RunFolder, named_run
from keras_transformer.tasks.classification import Classification
from keras_transformer.tasks.examination import Examination
from keras_transformer.translator.loading import refuse_precision, saved_model
from keras_transformer.translator.text_reader import TextReader
from pipelines import corpora, labelled_texts
from pipelines.corpora.line_files import read_lines, unequal

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
        self._texts, self._labels = _labelled(description, model, values)
        self.check(self._texts, self._labels, description["labels"]["names"])

    def examine(self, loading, at_once):
        if version := saved_model(RunFolder(self._model).path):
            refuse_precision(version, loading["precision"])
            reader = TextReader.load(self._model)
        else:
            values = {"precision": loading["precision"]}
            reader = TextReader.of(self.task.reload(named_run(self._model), values).module)
        return self.compare(reader, self._texts, self._labels)

    @staticmethod
    def check(texts, labels, names):
        """Refuse labels that the model cannot give."""
        labelled_texts.numbers_of(labels, names, "the text")

    @staticmethod
    def compare(reader, texts, labels):
        """Measure what a `TextReader` gives for texts."""
        return label_score.measure(reader.labels(texts), labels)

    def table(self, found):
        return (
            f"{found['texts']:,} texts\naccuracy {found['accuracy']:.1%}, macro F1 "
            f"{found['macro_f1']}"
        )


def _labelled(description, model, values):
    """Texts and their labels."""
    names = [values["source_file"], values["reference_file"]]
    if any(names):
        if not all(names):
            raise ValueError(
                "--source_file and --reference_file are needed: texts and their labels, line by "
                "line."
            )
        texts, labels = ([*read_lines(name)] for name in names)
        if len(texts) != len(labels) or not texts:
            raise ValueError(unequal(names, [len(texts), len(labels)]))
        return texts, labels
    if "corpus" not in description:
        raise ValueError(
            f"{model} does not say what it was trained on: pass texts and labels by --source_file "
            "and --reference_file."
        )
    split = getattr(corpora.load(**description["corpus"]), values["split"])
    return split.sources, split.targets
