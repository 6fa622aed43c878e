"""What tasks of an encoder-only model share: text of one language, a vocabulary with a mask, sizes
(Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding").
"""

import functools

from keras_transformer.models import chosen
from keras_transformer.runs.starting_point import starting_point
from keras_transformer.tasks.corpus_settings import corpus_settings
from keras_transformer.tasks.task import Task
from pipelines import corpora, vocabularies, vocabulary
from pipelines.record_files import Records


class TextReading(Task):
    """Learn something of the sources of a corpus. The vocabulary is that of `--vocabulary_from`, of
    `--init_from`, or learned from the training side.
    """

    def __init__(self, values):
        super().__init__(values)
        self.hyperparameters = chosen(values)
        hp = self.hyperparameters
        if hp.architecture != "transformer":
            raise ValueError(
                f"--task={self.name} trains a Transformer. Received: architecture="
                f"{hp.architecture}. Leave it out."
            )
        if hp.positions == "learned" and values["max_train_length"] >= hp.max_positions:
            raise ValueError(
                f"--max_train_length={values['max_train_length']} and the mark before a text need "
                f"one position more than that. Received: max_positions={hp.max_positions}. Try "
                f"--max_train_length={hp.max_positions - 1}."
            )
        self._corpus_settings = corpus_settings(values)

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{cls.name}_{values['corpus']}_{values['source_language']}"

    @functools.cached_property
    def corpus(self):
        """The text: `corpora.Corpus`."""
        corpus = corpora.load(**self._corpus_settings, cache_dir=self.values["cache_dir"])
        if isinstance(corpus.train, Records):
            raise ValueError(
                f"--task={self.name} reads text. Received: corpus=records, which holds ids of "
                "pairs. Pass --corpus=lines."
            )
        return corpus

    @property
    def pieces(self):
        return vocabularies.pieces_by_side(self.vocabulary)

    @property
    def width(self):
        return self.hyperparameters.d_model

    def write_files(self, folder):
        """Write the vocabulary."""
        origin = self.values["vocabulary_from"] or self.values["init_from"]
        vocabularies.save(self._vocabulary_of(origin) if origin else self._learned(), folder.path)

    def _learned(self):
        return vocabulary.learn(
            self.corpus.train.sources,
            self.values["vocabulary_size"],
            tags=[vocabulary.MASK],
            model_type=self.values["vocabulary_model"],
        )

    @staticmethod
    def _vocabulary_of(origin):
        """The vocabulary of another run, or of a SavedModel."""
        _, found = starting_point(origin)
        if found is None:
            raise ValueError(
                f"{origin} has no vocabulary to start from. Name the folder of a run of text."
            )
        return found

    def read_files(self, folder):
        self.vocabulary = vocabularies.load(folder.path).source
        size = self.vocabulary.size
        if size != self.hyperparameters.vocabulary_size:
            raise ValueError(
                f"--vocabulary_size must be {size}, the pieces of the vocabulary in "
                f"{folder.path}. Received: {self.hyperparameters.vocabulary_size}. Pass "
                f"--vocabulary_size={size}."
            )

    def description(self):
        return {
            "hyperparameters": self.hyperparameters.as_dict(),
            "corpus": self._corpus_settings,
            "vocabulary": {"fingerprint": self.vocabulary.fingerprint},
            "training": {"max_length": self.values["max_train_length"]},
        }

    def introduce(self):
        corpus = self.corpus
        sizes = [f"{len(split):,}" for split in (corpus.train, corpus.valid, corpus.test)]
        print(
            f"{corpus.name} {corpus.source_language}: {sizes[0]} texts to train, {sizes[1]} to "
            f"validate, {sizes[2]} to test"
        )
        counts = [f"{count:,} {reason}" for reason, count in corpus.dropped.items() if count]
        print(f"dropped: {', '.join(counts) or 'none'}")
