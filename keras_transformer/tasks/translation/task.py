"""Translation: pairs of sentences, an encoder-decoder, BLEU (Vaswani et al. 2017, section 6.1)."""

import functools
import logging
import sys
from collections.abc import Sequence

import keras

from keras_transformer.decoding.remembered_options import remembered
from keras_transformer.evaluation import metrics
from keras_transformer.inference.held_out_text import HeldOut, held_out_text
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.translator import Translator
from keras_transformer.models import sizes_of_description
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.tasks import corpus_settings
from keras_transformer.tasks.task import Score
from keras_transformer.tasks.text_task import (
    KEPT,
    SHOWN,
    TRIAL,
    TextTask,
    in_rows,
    refuse_long_lines,
)
from keras_transformer.tasks.translation.choices import (
    check_vocabulary,
    refuse_other_vocabulary,
    scheduled_sampling,
    tokenizer_of_run,
    variations,
    vocabulary_with,
)
from keras_transformer.tasks.translation.module import TranslationModule, decoding_options
from keras_transformer.tasks.translation.score import TranslationScorer
from keras_transformer.training.embedding_start import start_embeddings
from pipelines import vocabularies
from pipelines.batches import texts
from pipelines.corpora.parallel_text import ParallelText
from pipelines.corpora.protected_text import ProtectedText, protect
from pipelines.corpora.record_files import Records
from pipelines.corpora.spans import SENTINELS
from pipelines.corpora.spans_anew import SpansAnew, whole_texts
from pipelines.corpora.terms import GivenTerms, with_terms
from pipelines.dropped import Dropped
from pipelines.vocabularies.protected_spans import ProtectedSpans

MAY_CHANGE = ("decoding", "evaluation")
UNMEASURED = (
    "{} is measured with TensorFlow, of --validation_sentences: raise it, or choose cross_entropy."
)
# Sentences of the test split by which the BLEU of an export with rounded weights is measured.
MEASURED = 500

logger = logging.getLogger(__name__)


class Translation(TextTask):
    """Translate one language into another, from pairs of sentences.

    Attributes:
        quality: the measure of whole translations; higher is better.
        module_class: the module that translates strings, and is exported.
        upper_targets: whether --augment also writes the target of an upper-case source so.
        decoding: the `DecodingOptions` of the flags.
    """

    name = "translation"
    is_portable = True
    measures_perplexity = True
    labels = "target tokens"
    quality = "bleu"
    upper_targets = True
    unmeasured = UNMEASURED.format("BLEU")
    trial = TRIAL % "translate"
    scorer = TranslationScorer
    module_class = TranslationModule

    def __init__(self, values):
        super().__init__(values)
        translates = values["validation_sentences"] > 0 and keras.backend.backend() == "tensorflow"
        self.higher_is_better = {self.quality: True} if translates else {}
        self.higher_is_better["cross_entropy"] = False
        defaults = {**self.module_class.default_options, **values.get("decoding", {})}
        self.decoding = decoding_options(values, defaults)
        self.module_class.check(self.decoding)
        self._variations = variations(values, self.upper_targets)
        kind = values["vocabularies"]
        # With 0 pieces, because the size of the vocabulary is not known yet.
        check_vocabulary(values, kind, kind == "joint" or bool(values["vocabulary_from"]), 0)
        self._tokenize = values.get("tokenize")
        self.protected = ProtectedSpans.of(values)

    @functools.cached_property
    def corpus(self):
        """The text; with --protect without pairs whose sides have unequal spans."""
        return self._texts.corpus

    @functools.cached_property
    def _texts(self):
        """The corpus, and the texts that the model reads of it to train and to validate."""
        corpus = corpus_settings.load(self.corpus_settings, self.values)
        if not self.protected.are_any:
            return ProtectedText(corpus, corpus.train, corpus.valid)
        return protect(corpus, self.protected, self.values.get("strict", False))

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{corpus_settings.folder_name(values)}"

    def write_files(self, folder):
        """Write the vocabulary of --vocabulary_from or of the records, or learn one."""
        train = self._texts.train
        protected = self.protected.knowing(train.sources) if self.protected.are_any else None
        if origin := self.values["vocabulary_from"]:
            vocabulary = vocabulary_with(origin, self.corpus.tags, protected)
        else:
            vocabulary = self._prepared_vocabulary() or vocabularies.learn(
                train.sources,
                train.targets,
                self.values["vocabularies"],
                self.values["vocabulary_size"],
                self.corpus.tags,
                self.values["vocabulary_model"],
                protected,
            )
        vocabularies.save(vocabulary, folder.path)

    def read_files(self, folder):
        super().read_files(folder)
        own = self.vocabulary
        check_vocabulary(self.values, own.kind, own.shares_ids, own.size)
        if prepared := self._prepared_vocabulary():
            refuse_other_vocabulary(folder.path, self.vocabulary, prepared)
        self._tokenize = tokenizer_of_run(folder, self._tokenize, self.corpus.target_language)

    def _prepared_vocabulary(self):
        """Return the vocabulary of records, or None if the corpus is text."""
        train = self.corpus.train
        return train.vocabulary if isinstance(train, Records) else None

    def description(self):
        protected = {"protected": self.protected.as_dict()} if self.protected.are_any else {}
        return {
            **super().description(),
            **protected,
            "decoding": remembered(self.decoding),
            "evaluation": {"tokenize": self._tokenize},
        }

    @classmethod
    def held_out(cls, description):
        """Return the first pairs of the test split, if the run's corpus is still there."""
        if "corpus" not in description:
            return None
        try:
            pairs = held_out_text(description, "the run", "test")
        except (OSError, ValueError) as error:
            logger.warning("BLEU of the export is not measured: %s", error)
            return None
        tokenize = description.get("evaluation", {}).get("tokenize")
        tokenize = metrics.tokenizer_of(description["corpus"]["target_language"], tokenize)
        measure = functools.partial(metrics.score, tokenize=tokenize)
        return HeldOut(*(side[:MEASURED] for side in pairs), measure)

    @classmethod
    def fixed(cls, description):
        """Return all parts but decoding and scoring; hyperparameters are completed by defaults."""
        hyperparameters = sizes_of_description(description["hyperparameters"]).as_dict()
        parts = {name: description[name] for name in description if name not in MAY_CHANGE}
        return super().fixed({**parts, "hyperparameters": hyperparameters})

    @functools.cached_property
    def _pairs(self):
        """The pairs to train on and those to validate on, as `TokenizedPairs`."""
        longest = self.values["max_train_length"]
        train, valid = (
            texts.tokenize_pairs(side, self.vocabulary, longest)
            for side in (self._texts.train, self._texts.valid)
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
        train, valid = self._pairs
        dropped = Dropped(corpus.dropped)
        dropped[f"over {self.values['max_train_length']} tokens"] = train.too_long + valid.too_long
        print(
            f"{corpus.name} {corpus.source_language}-{corpus.target_language}: {len(train):,} "
            f"pairs to train, {len(valid):,} to validate, {len(corpus.test):,} to test"
        )
        print(f"dropped: {dropped.describe()}")
        if warning := self.doubt():
            print(f"warning: {warning}", file=sys.stderr)

    def doubt(self) -> str | None:
        """Return a warning if the scores may mislead."""
        return metrics.warning(self.corpus.test.targets, self._tokenize)

    def examples(self, split):
        train, valid = self._pairs
        if split != "train":
            return valid.examples()
        variations = self._variations(self.vocabulary)
        # Cutting other spans in each epoch makes sequences of any length.
        may_vary = not self.values["static_shapes"] and keras.backend.backend() == "tensorflow"
        has_spans = isinstance(self._texts.train, ParallelText) and SENTINELS[0] in self.corpus.tags
        if self.protected.glossary_rate:
            variations["source"] = self._given_terms(train, variations.get("source"))
        elif has_spans and may_vary:
            variations = self._spans_anew(train, variations)
        return train.examples(variations)

    def _spans_anew(self, train, variations):
        """Return variations that cut other spans each time, followed by `variations`."""
        pieces = whole_texts(self._texts.train, self.corpus.tags)
        pieces = [train.of_those_kept(column) for column in pieces]
        longest, seed = (self.values[name] for name in ("max_train_length", "seed"))
        return {
            side: SpansAnew(number, pieces, self.vocabulary, longest, seed, variations.get(side))
            for number, side in enumerate(("source", "target"))
        }

    def _given_terms(self, train, variation):
        """Return the variation that puts translations of terms into some sources, followed by
        `variation`.
        """
        seed = self.values["seed"]
        # Words of a line that is too long are too many to be compared with each other.
        text = self._texts.train
        text = text if train.is_kept is None else text.where(train.is_kept)
        lines = [*with_terms(text, seed, self.corpus.tags)]
        sentences = texts.token_ids(lines, self.vocabulary.source)
        rate = self.protected.glossary_rate
        return GivenTerms(rate, seed, sentences, self.values["max_train_length"], variation)

    def example_weights(self):
        return self._pairs[0].of_those_kept(self.corpus.weights)

    def start(self, model):
        if self.values["embedding_initialization"] == "cooccurrence":
            train, _ = self._pairs
            own = self.vocabulary
            offsets = (0, own.size if own.kind == "separate" else 0)
            counts = texts.cooccurrences((train.sources, train.targets), offsets, own.size)
            start_embeddings(model, counts, self.values["seed"])

    def objective(self):
        return scheduled_sampling(self.values) or super().objective()

    def validation(self, model, batches):
        """Measure cross-entropy, perplexity and accuracy per target token on all pairs, and
        `quality` on the first sentences, translated greedily under the rules of the flags.
        """
        measures = super().validation(model, batches)
        if self.quality not in self.higher_is_better:
            return measures
        sources = self.corpus.valid.sources[: self.values["validation_sentences"]]
        greedy = Translator(self.module_class(model, self.vocabulary, self.decoding.greedy()))

        def measure():
            return {**measures(), self.quality: self.validation_quality(greedy.translate(sources))}

        return measure

    def validation_quality(self, translations: Sequence[str]) -> float:
        """Return the `quality` of translations of the first validation sentences: BLEU."""
        references = self.corpus.valid.targets[: len(translations)]
        return metrics.score(translations, references, self._tokenize)["bleu"]

    def score(self, module):
        """Translate the test set by the options, and measure BLEU and chrF."""
        test = self.corpus.test
        translations = Translator(module).translate(test.sources)
        scores = metrics.score(translations, test.targets, self._tokenize)
        beam_size = self.decoding.search().beam_size
        shown = list(zip(test.sources, translations, test.targets, strict=True))[:SHOWN]
        report = [
            f"beam {beam_size}: BLEU {scores['bleu']}  chrF {scores['chrf']}",
            f"  {scores['bleu_signature']}",
            *in_rows(("source", "translation", "reference"), shown),
        ]
        return Score({"beam_size": beam_size, **scores}, report, test.sources[:KEPT])

    @classmethod
    def convert(cls, folder, path, values):
        """Write the weights for CTranslate2, the only other format."""
        if values["version"] or values["precision"] != "float32":
            raise ValueError(
                "--format=ctranslate2 writes one folder, in float32, which that engine rounds "
                "itself: leave out --version and --precision."
            )
        return ctranslate2_model.convert(*load_trained(folder), path, folder.read_description())
