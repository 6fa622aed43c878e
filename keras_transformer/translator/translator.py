"""`Translator.load(path).translate(lines)`: the same for a run's folder and for a SavedModel."""

import concurrent.futures
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.translator import long_text
from keras_transformer.translator.alignment import link_words
from keras_transformer.translator.batches import batches_of_tokens
from keras_transformer.translator.loading import load_module
from keras_transformer.translator.translation_module import MAX_SOURCE_LENGTH

BATCH_TOKENS = 2048


class Hypothesis(NamedTuple):
    """One translation of a line.

    Attributes:
        text: the translation.
        score: what hypotheses are ranked by: log P(Y | X) / lp(Y) + cp(X; Y) of a beam, log P(Y |
            X) of greedy search and samples.
        pieces: its tokens, EOS among them.
        log_probabilities: log P of each, in nats.
    """

    text: str
    score: float
    pieces: list
    log_probabilities: list


class Translator:
    """Translates lists of strings. What a line gives does not depend on the others.

    Args:
        module: a `TranslationModule`, live or reloaded.
        description: what the model is: its `model.json`.

    Example:
        translator = Translator.load("runs/home_assistant_en_de")
        translator.translate(["Turn off the lights."])
    """

    def __init__(self, module, description=None):
        self.module = module
        self.description = description or {}

    @classmethod
    def load(cls, path, precision="float32", **options):
        """Load what was trained or exported.

        Args:
            path: a run's folder; a checkpoint in one (.npz); several of them for an ensemble,
                listed or joined by commas; the folder of a SavedModel, or of numbered versions of
                it, of which the newest is taken.
            precision: "float32", or "bfloat16" for weights of half the bytes, faster on processors
                that multiply them.
            options: those of `DecodingOptions`. A SavedModel has its own inside, and its precision.

        Raises:
            FileNotFoundError: if there is no model.
            ValueError: if it is damaged, or for options that are out of range, exclude each other,
                or that a SavedModel does not take.
        """
        return cls(*load_module(path, options, precision))

    def translate(
        self,
        lines,
        prefixes=None,
        split_sentences=False,
        batch_tokens=None,
        batches_at_once=1,
        report=None,
    ):
        """Translate lines.

        Args:
            lines: strings.
            prefixes: as many strings, what each translation shall begin with; "" for anything.
            split_sentences: translate each sentence of a line on its own, and join the translations
                by a space.
            batch_tokens: tokens of the sources decoded at once, with padding; those of similar
                length together. Default: 2,048, or fewer where so few lines would leave a thread
                without work.
            batches_at_once: how many threads decode a batch each; see `spread_over_cores`.
            report: called with a number of lines (sentences, if these are split) whenever so many
                more are done.

        Returns:
            As many strings, in the same order; "" for an empty or blank line.

        Raises:
            ValueError: naming the first line that is longer than the model takes, before anything
                is translated.
        """
        if split_sentences:
            if prefixes is not None:
                raise ValueError(
                    "`split_sentences` and `prefixes` exclude each other: a prefix belongs to "
                    "one sentence."
                )
            sentences, counts = long_text.split(
                lines, self.description.get("corpus", {}).get("source_language", "en")
            )
            return long_text.join(
                self.translate(sentences, None, False, batch_tokens, batches_at_once, report),
                counts,
            )
        if prefixes is not None:
            details = self.translate_in_detail(
                lines, prefixes, batch_tokens, batches_at_once, report
            )
            return [hypotheses[0].text if hypotheses else "" for hypotheses in details]

        def decode(batch):
            translations = self.module.translate(tf.constant(batch))["translation"].numpy()
            return [translation.decode("utf-8", errors="replace") for translation in translations]

        return self._in_batches(decode, batch_tokens, batches_at_once, report, lines)

    def translate_in_detail(
        self, lines, prefixes=None, batch_tokens=None, batches_at_once=1, report=None
    ):
        """Translate lines, and tell what else was found and how likely it is.

        Args:
            as in `translate`.

        Returns:
            For each line up to `num_hypotheses` of `Hypothesis`, best first.
        """

        def decode(batch, prefixes):
            given = {
                name: tensor.numpy()
                for name, tensor in self.module.translate_in_detail(
                    tf.constant(batch), prefixes
                ).items()
            }
            found = zip(
                given["translations"],
                given["scores"],
                given["pieces"],
                given["log_probabilities"],
                strict=True,
            )
            return [
                [_hypothesis(*one) for one in zip(*sentence, strict=True) if one[1] > -np.inf]
                for sentence in found
            ]

        self._require("translate_in_detail")
        lines = list(lines)
        prefixes = [""] * len(lines) if prefixes is None else list(prefixes)
        return self._in_batches(decode, batch_tokens, batches_at_once, report, lines, prefixes)

    def score(self, lines, references, batch_tokens=None):
        """How likely the model finds given translations.

        Args:
            lines: strings.
            references: as many, their translations.
            batch_tokens: as in `translate`.

        Returns:
            For each pair log P(Y | X) in nats and |Y|, the number of its tokens, EOS included in
            both.

        Raises:
            ValueError: for unequal numbers of strings, a line or reference that is too long, or a
                SavedModel that cannot do this.
        """

        def score(batch, references):
            output = self.module.score(tf.constant(batch), tf.constant(references))
            return zip(
                output["log_probability"].numpy().tolist(),
                output["tokens"].numpy().tolist(),
                strict=True,
            )

        self._require("score")
        return self._in_batches(score, batch_tokens, 1, None, lines, references)

    def align(self, lines, references, batch_tokens=None):
        """Which words of lines and of their translations belong together.

        Args:
            lines, references, batch_tokens: as in `score`.

        Returns:
            For each pair a list of (source word, target word), words between spaces counted from 0,
            one for each target word.

        Raises:
            ValueError: as in `attention` and `score`.
        """

        def align(batch, references):
            output = self.module.attention(tf.constant(batch), tf.constant(references))
            layer = max(output["cross"].shape[1] - 2, 0)
            attention = tf.reduce_mean(output["cross"][:, layer], axis=1).numpy()
            pieces = (_pieces(output[name].numpy()) for name in ("source_pieces", "target_pieces"))
            return [link_words(*pair) for pair in zip(*pieces, attention, strict=True)]

        self._require("attention")
        return self._in_batches(align, batch_tokens, 1, None, lines, references)

    def attention(self, line, translation):
        """What every layer's heads attend to when the model reads a line and writes a translation
        of it.

        Returns:
            A dictionary: "source_pieces" and "target_pieces", lists of S and T strings, EOS the
            last; "encoder" (N, h, S, S), "decoder" (N, h, T, T) and "cross" (N, h, T, S), float32
            arrays, of which row t belongs to the step that gives target piece t.

        Raises:
            ValueError: if the model is an ensemble, or a SavedModel that cannot do this.
        """
        self._require("attention")
        self._lengths([line]), self._lengths([translation])
        output = {
            name: tensor.numpy()[0]
            for name, tensor in self.module.attention(
                tf.constant([line]), tf.constant([translation])
            ).items()
        }
        return {
            **output,
            **{name: _pieces(output[name][None])[0] for name in ("source_pieces", "target_pieces")},
        }

    def _require(self, function):
        if not hasattr(self.module, function):
            raise ValueError(
                f"this model has no `{function}`: an ensemble has no attention of its own, and a "
                "SavedModel exported before 0.4 has only "
                "`translate`. Name the folder of one run, or export it again."
            )

    def _in_batches(self, function, batch_tokens, batches_at_once, report, lines, *others):
        """What a function of lists of strings gives for each line, in order."""
        lines = list(lines)
        others = [list(other) for other in others]
        for other in others:
            if len(other) != len(lines):
                raise ValueError(
                    f"there must be as many of the one as of the other. Received: {len(lines):,} "
                    f"and {len(other):,} lines."
                )
            self._lengths(other)
        results = [None] * len(lines)

        def work(batch):
            given = function(*([side[index] for index in batch] for side in (lines, *others)))
            for index, result in zip(batch, given, strict=True):
                results[index] = result
            return len(batch)

        lengths = self._lengths(lines)
        batches = batches_of_tokens(
            lengths, batch_tokens or min(BATCH_TOKENS, -(-sum(lengths) // batches_at_once))
        )
        with concurrent.futures.ThreadPoolExecutor(batches_at_once) as pool:
            for done in pool.map(work, batches):
                if report:
                    report(done)
        return results

    def _lengths(self, lines):
        """How many tokens each line has."""
        lengths = []
        for start in range(0, len(lines), 1024):
            lengths += (
                self.module.source_lengths(tf.constant(lines[start : start + 1024]))
                .numpy()
                .tolist()
            )
        for number, length in enumerate(lengths, 1):
            if length > MAX_SOURCE_LENGTH:
                raise ValueError(
                    f"line {number} has {length:,} tokens, more than the {MAX_SOURCE_LENGTH:,} "
                    "allowed. Split it into sentences "
                    "(translate: --split_sentences)."
                )
        return lengths


def _pieces(rows):
    """Lists of strings from an array of bytes in which "" is padding."""
    return [[piece.decode("utf-8", errors="replace") for piece in row if piece] for row in rows]


def _hypothesis(text, score, pieces, log_probabilities):
    [pieces] = _pieces([pieces])
    return Hypothesis(
        text.decode("utf-8", errors="replace"),
        float(score),
        pieces,
        log_probabilities[: len(pieces)].tolist(),
    )
