"""Language modelling: text of one language, a decoder-only model, perplexity (Radford et al. 2018,
"Improving Language Understanding by Generative Pre-Training").
"""

from keras_transformer.decoding.lengths import most_read
from keras_transformer.inference.generator import Generator, in_words
from keras_transformer.models import LanguageModel
from keras_transformer.runs.description import most_positions
from keras_transformer.tasks.corpus_settings import language
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.score import NO_ANSWERS, OF_ANSWERS, Scorer
from keras_transformer.tasks.task import Score
from keras_transformer.tasks.text_task import (
    KEPT,
    SHOWN,
    TRIAL,
    OneLanguage,
    in_rows,
    refuse_long_lines,
)
from pipelines.batches import texts


class PerplexityScorer(Scorer):
    """Scores the perplexity of the lines of a split, or of --reference_file."""

    useless = OF_ANSWERS
    because = NO_ANSWERS.format("continues text")

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        self._lines = self.lines(values)

    def examine(self, loading, at_once):
        generator = Generator.load(self.model, loading["precision"], **loading["options"])
        return generator.perplexities([*self._lines.values()], numbers=[*self._lines])

    @staticmethod
    def summary(numbers):
        """Return the result of `examine` in a line."""
        of_pieces = in_words(numbers["perplexity"])
        of_words = in_words(numbers["perplexity_of_words"])
        return f"perplexity {of_pieces} a piece, {of_words} a word"

    def table(self, numbers):
        counts = f"{numbers['lines']:,} lines, {numbers['pieces']:,} pieces"
        return f"{counts}\n{PerplexityScorer.summary(numbers)}"


class LanguageModelling(OneLanguage):
    """Predict each piece of a text from those before it.

    The text is the source side of any corpus, such as the lines of `--corpus=lines`.
    """

    name = "language_modelling"
    is_portable = True
    labels = "tokens"
    trial = TRIAL % "generate"
    scorer = PerplexityScorer
    module_class = GenerationModule
    measures_perplexity = True

    def __init__(self, values):
        super().__init__(values)
        LanguageModel.check_attention(values["attention"])
        self.decoding = GenerationModule.options_of_flags(values)

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{values['corpus']}_{language(values, 'source_language')}"

    def introduce(self):
        """Print what is trained on, and refuse text that could not be scored later."""
        description = {"task": self.name, **self.description()}
        refuse_long_lines(self.corpus, self.vocabulary, 0, most_read(most_positions(description)))
        super().introduce()

    def examples(self, split):
        lines = getattr(self.corpus, split).sources
        return texts.examples(
            texts.tokenized(lines, self.vocabulary, self.values["max_train_length"])
        )

    def score(self, module):
        """Measure the perplexity of the test set, and continue the beginnings of some lines."""
        lines = self.corpus.test.sources
        generator = Generator.of(module)
        numbers = generator.perplexities(lines)
        # The first half of a line's words, at least one.
        rows = [line.split() for line in lines[:KEPT]]
        prompts = [" ".join(words[: max(1, len(words) // 2)]) for words in rows]
        continuations = generator.generate(prompts[:SHOWN])
        report = [
            self.scorer.summary(numbers),
            *in_rows(("prompt", "generated"), zip(prompts, continuations, strict=False)),
        ]
        return Score(numbers, report, prompts)
