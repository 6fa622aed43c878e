"""Base classes of the tasks on text: a corpus, a vocabulary, the sizes of a Transformer (Vaswani et
al. 2017, section 3), and the mask of text encoders (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding").
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.inference.functions import LiveFunctions, saved_functions
from keras_transformer.models import sizes_of_flags
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import ModelPath, vocabulary_at
from keras_transformer.tasks import TASKS, corpus_settings, task_class
from keras_transformer.tasks.corpus_settings import language
from keras_transformer.tasks.task import Task
from pipelines import vocabularies
from pipelines.corpora import Corpus, spans
from pipelines.corpora.record_files import Records
from pipelines.dropped import Dropped
from pipelines.vocabularies import SeparateVocabularies, vocabulary
from pipelines.vocabularies.token_ids import slices
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

# Sentences of the test set that are printed, and that the run stores.
SHOWN = 5
KEPT = 12
TRIAL = "echo {sample} | python -m keras_transformer.%s --model={version}"


class TextTask(Task):
    """A task on a corpus with a vocabulary, for a Transformer. `read_files` sets `vocabulary`."""

    def __init__(self, values: Mapping):
        super().__init__(values)
        self.hyperparameters = sizes_of_flags(values)
        self.corpus_settings = corpus_settings.corpus_settings(values)

    @functools.cached_property
    def corpus(self) -> Corpus:
        """The text to learn from."""
        return corpus_settings.load(self.corpus_settings, self.values)

    @property
    def pieces(self):
        return vocabularies.pieces_by_side(self.vocabulary)

    @property
    def width(self):
        return self.hyperparameters.d_model

    def read_files(self, folder):
        """Read the vocabulary, whose size becomes the model's."""
        self.vocabulary = vocabularies.load(folder.path)
        self.hyperparameters = dataclasses.replace(
            self.hyperparameters, vocabulary_size=self.vocabulary.size
        )

    def description(self):
        return {
            "hyperparameters": self.hyperparameters.as_dict(),
            **corpus_settings.described(self.corpus_settings, self.corpus),
            **{name: self.values[name] for name in ("imported",) if name in self.values},
            "vocabulary": {"fingerprint": self.vocabulary.fingerprint},
            "training": corpus_settings.training(self.values),
        }

    def reported(self):
        """Return the number and the checksum of the training pairs, which may be edited."""
        train = self.corpus.train
        checksum = "" if isinstance(train, Records) else f" with checksum {train.checksum():08x}"
        return {"training_text": f"{len(train):,} pairs{checksum}"}

    @classmethod
    def fixed(cls, description):
        """Return all parts but those that the corpus itself decides."""
        return corpus_settings.fixed(description)


class OneLanguage(TextTask):
    """A task on the sources of a corpus, such as the lines of `--corpus=lines`. `marks` is the
    number of positions that a text needs besides its tokens.
    """

    marks = 0

    def __init__(self, values):
        super().__init__(values)
        hp = self.hyperparameters
        longest = values["max_train_length"]
        if hp.positions == "learned" and longest + self.marks > hp.max_positions:
            raise ValueError(
                f"--max_train_length={longest} needs {longest + self.marks} learned positions, "
                f"those of marks included. Received: max_positions={hp.max_positions}. Try "
                f"--max_train_length={hp.max_positions - self.marks}."
            )

    @functools.cached_property
    def corpus(self):
        corpus = super().corpus
        if isinstance(corpus.train, Records):
            raise ValueError(
                f"--task={self.name} reads text. Received: corpus=records, which holds ids of "
                "pairs. Pass --corpus=lines."
            )
        if spans.SENTINELS[0] in corpus.tags:
            is_alone = corpus.name == "spans"
            received = "corpus=spans" if is_alone else "a mixture with corpus spans"
            remedy = "Pass --corpus=lines" if is_alone else "List corpus lines in its place"
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

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/{cls.name}_{values['corpus']}_{language(values, 'source_language')}"

    def read_files(self, folder):
        super().read_files(folder)
        self.vocabulary = self.vocabulary.source

    def write_files(self, folder):
        """Write a vocabulary learned from the training split."""
        vocabularies.save(self.learned_vocabulary(), folder.path)

    def learned_vocabulary(self, tags: Sequence[str] = ()) -> Vocabulary:
        """Learn a vocabulary from the training split."""
        return vocabulary.learn(
            self.corpus.train.sources,
            self.values["vocabulary_size"],
            tags=tags,
            model_type=self.values["vocabulary_model"],
        )

    def introduce(self):
        corpus = self.corpus
        sizes = [f"{len(split):,}" for split in (corpus.train, corpus.valid, corpus.test)]
        print(
            f"{corpus.name} {corpus.source_language}: {sizes[0]} texts to train, {sizes[1]} to "
            f"validate, {sizes[2]} to test"
        )
        print(f"dropped: {Dropped(corpus.dropped).describe()}")


class TextEncoding(OneLanguage):
    """A task for an encoder-only model. The vocabulary, which has a mask, is that of
    `--vocabulary_from` or of `--init_from`, or is learned from the training split.
    """

    trial = TRIAL % "predict"
    marks = 1

    def write_files(self, folder):
        """Write the vocabulary."""
        origin = self.values["vocabulary_from"] or self.values["init_from"]
        own = vocabulary_of(origin) if origin else self.learned_vocabulary([vocabulary.MASK])
        vocabularies.save(own, folder.path)

    def read_files(self, folder):
        super().read_files(folder)
        size = self.vocabulary.size
        if size > self.values["vocabulary_size"]:
            raise ValueError(
                f"--vocabulary_size must be at least {size}, the pieces of the vocabulary in "
                f"{folder.path}. Received: {self.values['vocabulary_size']}. Pass "
                f"--vocabulary_size={size}."
            )


def vocabulary_of(origin: str) -> Vocabulary | SeparateVocabularies | WordPieces:
    """Load the vocabulary of a run or SavedModel; a ValueError says that it has none."""
    loaded = vocabulary_at(origin)
    if loaded is None:
        raise ValueError(
            f"{origin} has no vocabulary to start from. Name the folder of a run of text."
        )
    return loaded


def refuse_long_lines(
    corpus: Corpus,
    vocabulary: Vocabulary | SeparateVocabularies,
    validated: int,
    most: int = MAX_SOURCE_LENGTH,
) -> None:
    """Refuse, before the training, sources that are too long to translate or score: those of the
    test split, and the first `validated` of the validation split.
    """
    for split, text, count in (
        ("validation", corpus.valid, validated),
        ("test", corpus.test, len(corpus.test)),
    ):
        parts = map(tf.constant, slices(text.sources[:count]))
        lengths = [vocabulary.source.tokenize(part).row_lengths().numpy() for part in parts]
        for index in np.flatnonzero(np.concatenate([[], *lengths]) > most)[:1]:
            raise ValueError(
                f"{text.place(index, f'the {split} split')} has more than the {most:,} tokens "
                "allowed of a source. Split it, or leave it out."
            )


def in_rows(names: Sequence[str], samples) -> list[str]:
    """Format samples for people: each has a row for each name."""
    width = max(map(len, names)) + 2
    return [
        "".join(f"\n  {name:<{width}}{text}" for name, text in zip(names, sample, strict=True))
        for sample in samples
    ]


def attend_of(model: str) -> Callable[..., dict] | None:
    """Return the signature "attend" of a model, from strings (B,) to "pieces" (B, T) and weights
    (B, N, h, T, T) by the name of their stack. None for two stacks, an ensemble, or an export
    without it.
    """
    paths = ModelPath.listed(model)
    if len(paths) > 1:
        return None
    [path] = paths
    if path.version:
        return saved_functions(path).get("attend")
    name = task_of(path.describe())
    if name not in TASKS or not issubclass(task_class(name), OneLanguage):
        return None
    return LiveFunctions(task_class(name).reload(path.run, {}))["attend"]
