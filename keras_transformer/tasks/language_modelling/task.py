"""Language modelling: text of one language, a decoder-only model, perplexity (Radford et al. 2018,
"Improving Language Understanding by Generative Pre-Training").
"""

from keras_transformer.inference.generator import Generator
from keras_transformer.inference.perplexity import in_words
from keras_transformer.models import LanguageModel
from keras_transformer.tasks.corpus_settings import language
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.task import Evaluation, label_measures, with_perplexity
from keras_transformer.tasks.text_task import OneLanguage, refuse_long_lines, trial
from keras_transformer.tasks.translation.choices import given_options
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines import vocabularies
from pipelines.batches import texts
from pipelines.vocabularies import vocabulary

SHOWN = 5
KEPT_EXAMPLES = 12


class LanguageModelling(OneLanguage):
    """Foresee each piece of a text from those before it.

    The text is the source side of any corpus, such as the lines of `--corpus=lines`.
    """

    name = "language_modelling"
    labels = "tokens"

    def __init__(self, values):
        super().__init__(values)
        if values["attention"].startswith("low_rank"):
            raise ValueError(
                f"--attention={values['attention']} mixes the keys of a whole text, so it is the "
                "encoder's alone, and a language model has none. Try --attention=local:64."
            )
        self._options = GenerationModule.options_of(_options(values))

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{values['corpus']}_{language(values, 'source_language')}"

    def write_files(self, folder):
        """Write the vocabulary, learned from the training side."""
        learned = vocabulary.learn(
            self.corpus.train.sources,
            self.values["vocabulary_size"],
            model_type=self.values["vocabulary_model"],
        )
        vocabularies.save(learned, folder.path)

    def examples(self):
        return self._examples(self.corpus.train)

    def validation_examples(self):
        return self._examples(self.corpus.valid)

    def _examples(self, split):
        longest = self.values["max_train_length"]
        return texts.examples(texts.tokenized(split.sources, self.vocabulary, longest))

    def model(self, dtype):
        return LanguageModel(self.hyperparameters, dtype=dtype)

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def introduce(self):
        """Print what is trained on; what could not be measured later is told now."""
        refuse_long_lines(self.corpus, self.vocabulary, validated=0)
        super().introduce()

    def validation(self, model, batches):
        """Cross-entropy, perplexity and accuracy per piece of all lines."""
        return with_perplexity(label_measures(model, batches))

    def module(self, model):
        return GenerationModule(model, self.vocabulary, self._options)

    @classmethod
    def reload(cls, folder, values):
        return GenerationModule.of_run(folder, values["precision"], _options(values))

    def evaluate(self, module):
        """Perplexity of the test set, and some of its lines begun and continued."""
        lines = self.corpus.test.sources
        generator = Generator.of(module)
        scores = generator.perplexities(lines)
        prompts = [_beginning(line) for line in lines[:KEPT_EXAMPLES]]
        generated = generator.generate(prompts[:SHOWN])
        report = [
            f"perplexity {in_words(scores['perplexity'])} a piece, "
            f"{in_words(scores['perplexity_of_words'])} a word",
            *(
                f"\n  prompt     {prompt}\n  generated  {text}"
                for prompt, text in zip(prompts, generated, strict=False)
            ),
        ]
        return Evaluation(scores, report, prompts)

    def usage(self, version):
        return trial(_beginning(self.corpus.test.sources[0]), "generate", version)


def _options(values):
    """The options that flags give. --samples=0 is its default, and asks for nothing."""
    given = given_options(values)
    return {name: value for name, value in given.items() if name != "samples" or value}


def _beginning(line):
    """The first half of a line's words, at least one."""
    words = line.split()
    return " ".join(words[: max(1, len(words) // 2)])
