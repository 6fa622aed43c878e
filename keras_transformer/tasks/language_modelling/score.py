"""The perplexity of text that a language model has not seen."""

from keras_transformer.inference.generator import Generator
from keras_transformer.inference.perplexity import in_words
from keras_transformer.tasks.score import Examination
from pipelines import corpora
from pipelines.corpora.line_files import read_lines

# Flags of `evaluate` that are for answers with a reference.
OF_ANSWERS = ("metrics", "confidence", "baseline_file", "source_file", "evalb_parameters")


class PerplexityExamination(Examination):
    """The lines of a split, or of the file --reference_file."""

    def __init__(self, description, model, values):
        if given := [name for name in OF_ANSWERS if values[name]]:
            raise ValueError(
                f"--{given[0]} is for answers that have a reference, and {model} continues text: "
                "leave it out. Text of your own goes into --reference_file."
            )
        self._model = model
        self._lines = _lines(description, model, values)

    def examine(self, loading, at_once):
        generator = Generator.load(self._model, loading["precision"], **loading["options"])
        return generator.perplexities(self._lines)

    def table(self, found):
        return (
            f"{found['lines']:,} lines, {found['pieces']:,} pieces\n"
            f"perplexity {in_words(found['perplexity'])} a piece, "
            f"{in_words(found['perplexity_of_words'])} a word"
        )


def _lines(description, model, values):
    if name := values["reference_file"]:
        lines = [line for line in read_lines(name) if line]
        if not lines:
            raise ValueError(f"{name} holds no text. Fill it, or name another file.")
        return lines
    if "corpus" not in description:
        raise ValueError(
            f"{model} does not say what it was trained on: pass text by --reference_file."
        )
    return getattr(corpora.load(**description["corpus"]), values["split"]).sources
