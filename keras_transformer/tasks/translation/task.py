"""Translation: pairs of sentences, an encoder-decoder, BLEU (Vaswani et al. 2017, section 6.1)."""

import dataclasses
import functools
import sys
from collections.abc import Sequence

import keras

from keras_transformer.decoding.options import remembered
from keras_transformer.evaluation import bleu
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.translator import Translator
from keras_transformer.models import model_of, sizes_of_description, sizes_of_flags
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.tasks import corpus_settings
from keras_transformer.tasks.task import Evaluation, Task, label_measures, with_perplexity
from keras_transformer.tasks.text_task import refuse_long_lines, trial
from keras_transformer.tasks.translation.choices import (
    check_flags,
    check_vocabulary,
    decoding_options,
    refuse_other_vocabulary,
    scheduled_sampling,
    segmentations,
    start,
    tokenizer_of_run,
)
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines import vocabularies
from pipelines.batches import texts
from pipelines.corpora.record_files import Records
from pipelines.dropped import Dropped

SHOWN = 5
KEPT_EXAMPLES = 12
MAY_CHANGE = ("decoding", "evaluation")


class Translation(Task):
    """Translate one language into another, from pairs of sentences.

    Attributes:
        quality: the measure of whole translations; higher is better.
        command: of the package, that an export is tried by.
        module_class: what makes strings of strings, and is exported.
    """

    name = "translation"
    labels = "target tokens"
    quality = "bleu"
    command = "translate"
    unmeasured = (
        "BLEU is measured with TensorFlow, of --validation_sentences: raise it, or choose "
        "cross_entropy."
    )
    module_class = TranslationModule

    def __init__(self, values):
        super().__init__(values)
        translates = values["validation_sentences"] > 0 and keras.backend.backend() == "tensorflow"
        self.higher_is_better = {self.quality: True} if translates else {}
        self.higher_is_better["cross_entropy"] = False
        self._corpus_settings = corpus_settings.corpus_settings(values)
        self._options = decoding_options(values, self.module_class.default_options)
        self.module_class.check(self._options)
        self._segmentations = segmentations(values)
        check_flags(values)
        self._tokenize = values.get("tokenize")
        self.hyperparameters = sizes_of_flags(values)

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{corpus_settings.folder_name(values)}"

    @functools.cached_property
    def corpus(self):
        """The text: `corpora.Corpus`."""
        return corpus_settings.load(
            self._corpus_settings, self.values.get("cache_dir"), self.values.get("strict", False)
        )

    @property
    def pieces(self):
        return vocabularies.pieces_by_side(self.vocabulary)

    @property
    def width(self):
        return self.hyperparameters.d_model

    def write_files(self, folder):
        """Write the vocabulary: that of the records, else learned from the training side."""
        train = self.corpus.train
        vocabulary = self._prepared_vocabulary() or vocabularies.learn(
            train.sources,
            train.targets,
            self.values["vocabularies"],
            self.values["vocabulary_size"],
            self.corpus.tags,
            self.values["vocabulary_model"],
        )
        vocabularies.save(vocabulary, folder.path)

    def read_files(self, folder):
        self.vocabulary = vocabularies.load(folder.path)
        check_vocabulary(self.values, self.vocabulary.kind, self.vocabulary.size)
        self.hyperparameters = dataclasses.replace(
            self.hyperparameters, vocabulary_size=self.vocabulary.size
        )
        if prepared := self._prepared_vocabulary():
            refuse_other_vocabulary(folder.path, self.vocabulary, prepared)
        self._tokenize = tokenizer_of_run(folder, self._tokenize, self.corpus.target_language)

    def _prepared_vocabulary(self):
        """That of the records; None of a corpus that is text."""
        train = self.corpus.train
        return train.vocabulary if isinstance(train, Records) else None

    def description(self):
        return {
            "hyperparameters": self.hyperparameters.as_dict(),
            **corpus_settings.described(self._corpus_settings, self.corpus),
            "vocabulary": {"fingerprint": self.vocabulary.fingerprint},
            "training": corpus_settings.training(self.values),
            "decoding": remembered(self._options),
            "evaluation": {"tokenize": self._tokenize},
        }

    @classmethod
    def fixed(cls, description):
        """All but decoding and scoring; hyperparameters new since a version had their default."""
        hyperparameters = sizes_of_description(description["hyperparameters"])
        parts = {name: description[name] for name in description if name not in MAY_CHANGE}
        return corpus_settings.fixed({**parts, "hyperparameters": hyperparameters.as_dict()})

    @functools.cached_property
    def _pairs(self):
        """The pairs to train on and those to validate on, as `TokenizedPairs`."""
        longest = self.values["max_train_length"]
        train, valid = (
            texts.tokenize_pairs(side, self.vocabulary, longest)
            for side in (self.corpus.train, self.corpus.valid)
        )
        if not len(train) or not len(valid):
            raise ValueError(
                "no pair is left to train or validate on: all are over "
                f"--max_train_length={longest} tokens. Raise it."
            )
        return train, valid

    def introduce(self):
        refuse_long_lines(self.corpus, self.vocabulary, self.values["validation_sentences"])
        corpus = self.corpus
        train, _ = self._pairs
        dropped = Dropped(corpus.dropped)
        dropped[f"over {self.values['max_train_length']} tokens"] = train.too_long
        print(
            f"{corpus.name} {corpus.source_language}-{corpus.target_language}: "
            f"{len(train):,} pairs to train, {len(corpus.valid):,} to validate, "
            f"{len(corpus.test):,} to test"
        )
        print(f"dropped: {dropped.describe()}")
        if warning := self.doubt():
            print(f"warning: {warning}", file=sys.stderr)

    def doubt(self) -> str | None:
        """What to tell somebody whose scores may not be what they seem."""
        return bleu.doubt(self.corpus.test.targets, self._tokenize)

    def examples(self):
        return self._pairs[0].examples(self._segmentations(self.vocabulary))

    def validation_examples(self):
        return self._pairs[1].examples()

    def example_weights(self):
        return self._pairs[0].of_those_kept(self.corpus.weights)

    def model(self, dtype):
        return model_of(self.hyperparameters, dtype)

    def start(self, model):
        start(self.values, model, self.vocabulary, self._pairs[0])

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def objective(self):
        return scheduled_sampling(self.values) or super().objective()

    def validation(self, model, batches):
        """Cross-entropy, perplexity and accuracy per target token of all pairs; `quality` of the
        first sentences, translated greedily by the rules of the flags.
        """
        measures = with_perplexity(label_measures(model, batches))
        if self.quality not in self.higher_is_better:
            return measures
        sources = self.corpus.valid.sources[: self.values["validation_sentences"]]
        greedy = Translator(self.module_class(model, self.vocabulary, self._options.greedy()))

        def measure():
            return {**measures(), self.quality: self.validation_quality(greedy.translate(sources))}

        return measure

    def validation_quality(self, translations: Sequence[str]) -> float:
        """The `quality` of translations of the first validation sentences: BLEU."""
        references = self.corpus.valid.targets[: len(translations)]
        return bleu.score(translations, references, self._tokenize)["bleu"]

    def module(self, model):
        return self.module_class(model, self.vocabulary, self._options)

    @classmethod
    def reload(cls, folder, values):
        model, vocabulary = load_trained(folder, precision=values["precision"])
        options = decoding_options(values, cls.module_class.defaults(folder.read_description()))
        return cls.module_class(model, vocabulary, options)

    def evaluate(self, module):
        """BLEU and chrF of the test set, translated as the options say."""
        test = self.corpus.test
        translations = Translator(module).translate(test.sources)
        scores = bleu.score(translations, test.targets, self._tokenize)
        beam_size = self._options.search().beam_size
        shown = list(zip(test.sources, translations, test.targets, strict=True))[:SHOWN]
        report = [
            f"beam {beam_size}: BLEU {scores['bleu']}  chrF {scores['chrf']}",
            f"  {scores['bleu_signature']}",
            *(
                f"\n  source       {source}\n  translation  {translation}\n  reference    {target}"
                for source, translation, target in shown
            ),
        ]
        return Evaluation({"beam_size": beam_size, **scores}, report, test.sources[:KEPT_EXAMPLES])

    def usage(self, version):
        return trial(self.corpus.test.sources[0], self.command, version)

    @classmethod
    def convert(cls, folder, path, values):
        """Write the weights for CTranslate2, the one other format."""
        if values["version"] or values["precision"] != "float32":
            raise ValueError(
                "--format=ctranslate2 writes one folder, in float32, which that engine rounds "
                "itself: leave out --version and --precision."
            )
        return ctranslate2_model.convert(*load_trained(folder), path, folder.read_description())
