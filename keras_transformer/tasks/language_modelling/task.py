"""Language modelling: text of one language, a decoder-only model, perplexity (Radford et al. 2018,
"Improving Language Understanding by Generative Pre-Training").
"""

from keras_transformer.inference.generator import Generator
from keras_transformer.tasks.corpus_settings import language
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.language_modelling.score import PerplexityScorer
from keras_transformer.tasks.task import Score, with_perplexity
from keras_transformer.tasks.text_task import (
    KEPT,
    SHOWN,
    TRIAL,
    OneLanguage,
    in_rows,
    refuse_long_lines,
)
from keras_transformer.training.loss import label_measures
from pipelines.batches import texts


class LanguageModelling(OneLanguage):
    """Foresee each piece of a text from those before it.

    The text is the source side of any corpus, such as the lines of `--corpus=lines`.
    """

    name = "language_modelling"
    is_portable = True
    labels = "tokens"
    trial = TRIAL % "generate"
    scorer = PerplexityScorer
    module_class = GenerationModule

    def __init__(self, values):
        super().__init__(values)
        if values["attention"].startswith("low_rank"):
            raise ValueError(
                f"--attention={values['attention']} mixes the keys of a whole text, so it is the "
                "encoder's alone, and a language model has none. Try --attention=local:64."
            )
        self.decoding = GenerationModule.options_of_flags(values)

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{values['corpus']}_{language(values, 'source_language')}"

    def introduce(self):
        """Print what is trained on; what could not be measured later is told now."""
        refuse_long_lines(self.corpus, self.vocabulary, validated=0)
        super().introduce()

    def examples(self, split):
        lines = getattr(self.corpus, split).sources
        return texts.examples(
            texts.tokenized(lines, self.vocabulary, self.values["max_train_length"])
        )

    def validation(self, model, batches):
        """Cross-entropy, perplexity and accuracy per piece of all lines."""
        return with_perplexity(label_measures(model, batches))

    def score(self, module):
        """Perplexity of the test set, and some of its lines begun and continued."""
        lines = self.corpus.test.sources
        generator = Generator.of(module)
        numbers = generator.perplexities(lines)
        prompts = [_beginning(line) for line in lines[:KEPT]]
        texts_made = generator.generate(prompts[:SHOWN])
        report = [
            self.scorer.summary(numbers),
            *in_rows(("prompt", "generated"), zip(prompts, texts_made, strict=False)),
        ]
        return Score(numbers, report, prompts)


def _beginning(line):
    """The first half of a line's words, at least one."""
    words = line.split()
    return " ".join(words[: max(1, len(words) // 2)])
