"""The perplexity of text that a language model has not seen."""

from keras_transformer.inference.generator import Generator
from keras_transformer.inference.perplexity import in_words
from keras_transformer.tasks.score import OF_ANSWERS, Scorer


class PerplexityScorer(Scorer):
    """The lines of a split, or of the file --reference_file."""

    useless = OF_ANSWERS
    because = (
        "is for answers that have a reference, and {model} continues text: leave it out. Text of "
        "your own goes into --reference_file."
    )

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        self._lines = self.lines(values)

    def examine(self, loading, at_once):
        generator = Generator.load(self.model, loading["precision"], **loading["options"])
        return generator.perplexities(self._lines)

    @staticmethod
    def summary(numbers):
        """What `examine` gave, in a line."""
        of_pieces = in_words(numbers["perplexity"])
        of_words = in_words(numbers["perplexity_of_words"])
        return f"perplexity {of_pieces} a piece, {of_words} a word"

    def table(self, numbers):
        counts = f"{numbers['lines']:,} lines, {numbers['pieces']:,} pieces"
        return f"{counts}\n{PerplexityScorer.summary(numbers)}"
