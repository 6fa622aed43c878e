"""What tasks of an encoder-only model share: a vocabulary with a mask (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding").
"""

from keras_transformer.runs.starting_point import starting_point
from keras_transformer.tasks.corpus_settings import language
from keras_transformer.tasks.one_language import OneLanguage
from pipelines import vocabularies
from pipelines.vocabularies import vocabulary


class TextReading(OneLanguage):
    """Learn something of the sources of a corpus. The vocabulary is that of `--vocabulary_from`, of
    `--init_from`, or learned from the training side.
    """

    def __init__(self, values):
        super().__init__(values)
        hp = self.hyperparameters
        if hp.positions == "learned" and values["max_train_length"] >= hp.max_positions:
            raise ValueError(
                f"--max_train_length={values['max_train_length']} and the mark before a text need "
                f"one position more than that. Received: max_positions={hp.max_positions}. Try "
                f"--max_train_length={hp.max_positions - 1}."
            )

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{cls.name}_{values['corpus']}_{language(values, 'source_language')}"

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
        super().read_files(folder)
        size = self.vocabulary.size
        if size > self.values["vocabulary_size"]:
            raise ValueError(
                f"--vocabulary_size must be at least {size}, the pieces of the vocabulary in "
                f"{folder.path}. Received: {self.values['vocabulary_size']}. Pass "
                f"--vocabulary_size={size}."
            )
