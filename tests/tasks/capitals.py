"""A user's own task, of the kind of tagging: capitals come back into text that has none.

`python capitals.py train --model_dir=... --corpus=lines --data_dir=...` trains it, `... export ...`
exports it. Nothing of the package names it.
"""

import functools
import sys

import numpy as np
import tensorflow as tf

from keras_transformer import export, train
from keras_transformer.inference.functions import LiveFunctions
from keras_transformer.inference.model_graphs import IDS, traced
from keras_transformer.inference.text_encoder_module import TextEncoderModule
from keras_transformer.inference.text_module import TEXT
from keras_transformer.models import TokenClassifier, sizes_of_description
from keras_transformer.saved_models.options import Precision
from keras_transformer.tasks.options import OF_ENCODERS, ONE_STACK
from keras_transformer.tasks.task import Score
from keras_transformer.tasks.text_task import KEPT, SHOWN, TextEncoding, in_rows
from pipelines import vocabularies
from pipelines.batches import labelled_texts
from pipelines.options import Options, like, option
from pipelines.vocabularies import vocabulary

SMALL, FIRST, ALL = range(3)


class CapitalOptions(Options):
    """Capitals."""

    acronyms: bool = option(True, "Whether a word may be all in capitals.")


def kind_of(word, acronyms):
    """How a word is written."""
    if acronyms and len(word) > 1 and word.isupper():
        return ALL
    return FIRST if word[:1].isupper() else SMALL


class CapitalsModule(TextEncoderModule):
    """`serving_default`, `restore`: text, strings (B,), to `restored` (B,)."""

    does = "text without capitals in, with capitals out"
    heading = "A model that writes capitals"

    def __init__(self, model, words):
        super().__init__(model, words)
        self._logits = traced(
            lambda tokens, segments: model((tokens, segments), training=False), IDS, IDS
        )
        self.restore = traced(self._restore, TEXT)

    @classmethod
    def build(cls, description, dtype):
        kinds = ALL + description["capitals"]["acronyms"]
        return TokenClassifier(sizes_of_description(description["hyperparameters"]), kinds, dtype)

    def functions(self):
        return {**super().functions(), "serving_default": self.restore, "restore": self.restore}

    def _restore(self, text):
        tokenized = labelled_texts.in_words(text, self.vocabulary)
        tokens = labelled_texts.opened(tokenized.ids.to_tensor(), self.vocabulary.marks)
        tokens = tokens[:, : self.longest]
        kinds = tf.argmax(self._logits(tokens, tf.zeros_like(tokens)), axis=-1)
        places = tokenized.places.to_tensor(default_value=labelled_texts.NOWHERE) + 1
        is_read = (places > 0) & (places < tf.shape(tokens)[1])
        of_words = tf.gather(kinds, tf.where(is_read, places, 0), batch_dims=1)
        chosen = tf.where(is_read, of_words, SMALL)
        words = tokenized.words.to_tensor()
        letters = tf.strings.unicode_split(tf.reshape(words, [-1]), "UTF-8")
        parts = [letters[:, :1], letters[:, 1:]]
        begins, rests = (tf.strings.reduce_join(part, axis=-1) for part in parts)
        capital = tf.reshape(tf.strings.upper(begins, "utf-8") + rests, tf.shape(words))
        cased = tf.where(chosen == ALL, tf.strings.upper(words, "utf-8"), capital)
        written = tf.ragged.boolean_mask(tf.where(chosen == SMALL, words, cased), words != "")
        return {"restored": tf.strings.reduce_join(written, axis=-1, separator=" ")}


class Capitals(TextEncoding):
    """Learn how the words of `--corpus=lines` are written."""

    name = "capitals"
    labels = "words"
    options = (*OF_ENCODERS, CapitalOptions, like(ONE_STACK, without=("tie_embeddings",)))
    export_options = (Precision,)
    module_class = CapitalsModule

    @functools.cached_property
    def kinds(self):
        return ALL + self.values["acronyms"]

    def write_files(self, folder):
        words = vocabulary.learn(
            [line.lower() for line in self.corpus.train.sources],
            self.values["vocabulary_size"],
            tags=[vocabulary.MASK],
            model_type=self.values["vocabulary_model"],
        )
        vocabularies.save(words, folder.path)

    def description(self):
        return {**super().description(), "capitals": {"acronyms": self.values["acronyms"]}}

    def examples(self, split):
        text = getattr(self.corpus, split)
        kinds = [
            " ".join(str(kind_of(word, self.values["acronyms"])) for word in line.split())
            for line in text.sources
        ]
        lowered = [line.lower() for line in text.sources]
        names = [*map(str, range(self.kinds))]
        longest = self.values["max_train_length"]
        place = functools.partial(text.place, side=split)
        return labelled_texts.tagged_examples(
            lowered, kinds, names, self.vocabulary, longest, place
        )

    def score(self, module):
        """Share of the words of the test set that are written as they were."""
        texts = self.corpus.test.sources
        lowered = [line.lower() for line in texts]
        answers = LiveFunctions(module)["restore"](text=tf.constant(lowered))["restored"]
        written = [answer.decode() for answer in answers]
        pairs = zip(" ".join(written).split(), " ".join(texts).split(), strict=True)
        accuracy = float(np.mean([ours == theirs for ours, theirs in pairs]))
        shown = in_rows(("text", "restored"), list(zip(lowered, written, strict=True))[:SHOWN])
        return Score({"accuracy": accuracy}, [f"accuracy {accuracy:.3f}", *shown], lowered[:KEPT])


if __name__ == "__main__":
    {"train": train.run, "export": export.run}[sys.argv.pop(1)](Capitals)
