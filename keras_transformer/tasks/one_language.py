"""What tasks of text in one language share: the sources of a corpus, a vocabulary, and the sizes of
a Transformer.
"""

import dataclasses
import functools
from collections.abc import Mapping

from keras_transformer.models import chosen
from keras_transformer.tasks import corpus_settings
from keras_transformer.tasks.task import Task
from pipelines import vocabularies
from pipelines.corpora import spans
from pipelines.corpora.record_files import Records
from pipelines.dropped import Dropped


class OneLanguage(Task):
    """Learn something of the sources of a corpus, such as the lines of `--corpus=lines`. A task
    sets `vocabulary` when it reads the run's files.
    """

    def __init__(self, values: Mapping):
        super().__init__(values)
        self.hyperparameters = chosen(values)
        self._corpus_settings = corpus_settings.corpus_settings(values)

    @functools.cached_property
    def corpus(self):
        """The text: `corpora.Corpus`."""
        corpus = corpus_settings.load(
            self._corpus_settings, self.values["cache_dir"], self.values["strict"]
        )
        if isinstance(corpus.train, Records):
            raise ValueError(
                f"--task={self.name} reads text. Received: corpus=records, which holds ids of "
                "pairs. Pass --corpus=lines."
            )
        if spans.SENTINELS[0] in corpus.tags:
            alone = corpus.name == "spans"
            received = "corpus=spans" if alone else "a mixture with corpus spans"
            remedy = "Pass --corpus=lines" if alone else "List corpus lines in its place"
            raise ValueError(
                f"--task={self.name} reads whole texts. Received: {received}, which cuts words out "
                f"of them. {remedy}, which reads the same files."
            )
        # The symbols of treebanks are tags of targets.
        tags = [tag for tag in corpus.tags if tag.startswith("<")]
        if tags or corpus.weights is not None:
            raise ValueError(
                f"--task={self.name} reads all texts alike. Received: a mixture with "
                f"{'tags' if tags else 'weights'}. Leave them out of --mixture."
            )
        return corpus

    def read_files(self, folder):
        """Read the vocabulary: its size is the model's."""
        self.vocabulary = vocabularies.load(folder.path).source
        self.hyperparameters = dataclasses.replace(
            self.hyperparameters, vocabulary_size=self.vocabulary.size
        )

    @property
    def pieces(self):
        return vocabularies.pieces_by_side(self.vocabulary)

    @property
    def width(self):
        return self.hyperparameters.d_model

    def description(self):
        return {
            "hyperparameters": self.hyperparameters.as_dict(),
            **corpus_settings.described(self._corpus_settings, self.corpus),
            "vocabulary": {"fingerprint": self.vocabulary.fingerprint},
            "training": corpus_settings.training(self.values),
        }

    @classmethod
    def fixed(cls, description):
        """All but what the corpus says itself."""
        return corpus_settings.fixed(description)

    def introduce(self):
        corpus = self.corpus
        sizes = [f"{len(split):,}" for split in (corpus.train, corpus.valid, corpus.test)]
        print(
            f"{corpus.name} {corpus.source_language}: {sizes[0]} texts to train, {sizes[1]} to "
            f"validate, {sizes[2]} to test"
        )
        print(f"dropped: {Dropped(corpus.dropped).describe()}")
