"""A `TranslationModule` called from Python: lists of strings in, Python values out."""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding import DecodingOptions
from keras_transformer.saved_models.signature import as_bytes, as_strings
from pipelines.vocabularies.vocabulary import RESERVED


class Hypothesis(NamedTuple):
    """One translation of a line.

    Attributes:
        text: the translation.
        score: what hypotheses are ranked by: log P(Y | X) / lp(Y) + cp(X; Y) in a beam of 2 or
            more, log P(Y | X) in greedy search (a beam of 1) and for samples.
        pieces: its tokens, EOS included; None from a SavedModel that is called with other options
            than it was exported with.
        log_probabilities: log P of each token, in nats; None like `pieces`.
    """

    text: str
    score: float
    pieces: list[str] | None
    log_probabilities: list[float] | None

    def as_dict(self) -> dict:
        """Return the object of `translate --json`, with numbers rounded to 5 decimals."""
        parts = {"translation": self.text, "score": round(self.score, 5)}
        if self.pieces is None:
            return parts
        pairs = zip(self.pieces, self.log_probabilities, strict=True)
        return parts | {
            "log_probability": round(sum(self.log_probabilities), 5),
            "pieces": [[piece, round(value, 5)] for piece, value in pairs],
        }


class Live:
    """A module in memory, as `Translator` calls it. An ensemble has no attention of its own."""

    def __init__(self, module, gives_attention: bool):
        self._module = module
        self.marks = getattr(module, "marks", None)  # A reloaded module has none.
        self._gives_attention = gives_attention

    def lengths(self, lines: list[str]) -> list[int]:
        """Return the number of tokens of each line, EOS included."""
        return self._module.source_lengths(as_bytes(lines)).numpy().tolist()

    def target_lengths(self, references: list[str]) -> list[int]:
        """Return the number of tokens of each translation, EOS included."""
        return self._module.target_lengths(as_bytes(references)).numpy().tolist()

    def has_piece(self, piece: str) -> bool:
        """Return whether a piece is in the source's vocabulary, and not a reserved one."""
        return piece not in RESERVED and piece in self._module.vocabulary.source.pieces

    def check(self, options: Mapping) -> None:
        """Refuse options that are out of range."""
        DecodingOptions(**options)

    def translate(self, lines: list[str]) -> list[str]:
        """Return the best translation of each line."""
        [output] = self._module.translate(as_bytes(lines)).values()
        return as_strings(output.numpy())

    def translate_in_detail(self, lines: list[str], prefixes: list[str]) -> list[list[Hypothesis]]:
        """Return for each line the hypotheses that begin with its prefix, best first."""
        answer = self._module.translate_in_detail(as_bytes(lines), as_bytes(prefixes))
        names = ("translations", "scores", "pieces", "log_probabilities")
        rows = zip(*(answer[name].numpy() for name in names), strict=True)
        return [
            [_hypothesis(*fields) for fields in zip(*row, strict=True) if fields[1] > -np.inf]
            for row in rows
        ]

    def translate_with_penalties(
        self, beam_size: int, length_penalties: list[float], lines: list[str]
    ) -> list[list[str]]:
        """Return the best translation of each line by each penalty; the paper's beam runs once."""
        penalties = np.array(length_penalties, np.float32)
        size = np.array([beam_size], np.int32)
        at_once = [penalties] if self._module.options.beam_form == "leaving" else penalties[:, None]
        texts = [self.sweep(as_bytes(lines), size, batch).numpy() for batch in at_once]
        return [as_strings(row) for row in np.concatenate(texts, axis=1)]

    @functools.cached_property
    def sweep(self) -> Callable:
        """Return a graph for all beam sizes and penalties: from strings (B,), a beam size (1,) and
        A length penalties to strings (B, A). A method of `TranslationModule` would be exported.
        """
        import tensorflow as tf

        from keras_transformer.decoding.penalty_sweep import PenaltySweep
        from keras_transformer.inference.model_graphs import traced
        from keras_transformer.inference.text_module import TEXT

        module = self._module

        def sweep(text, beam_size, length_penalties):
            search = PenaltySweep.of(module.options, beam_size, length_penalties)
            return module.target_texts(module.search(search, text)[0], text)

        beam_size = tf.TensorSpec([1], tf.int32, name="beam_size")
        length_penalties = tf.TensorSpec([None], tf.float32, name="length_penalties")
        return traced(sweep, TEXT, beam_size, length_penalties)

    def score(self, lines: list[str], references: list[str]) -> list[tuple[float, int]]:
        """Return log P(Y | X) in nats and |Y| of each pair."""
        answer = self._module.score(as_bytes(lines), as_bytes(references))
        names = ("log_probability", "tokens")
        return list(zip(*(answer[name].numpy().tolist() for name in names), strict=True))

    def attention(
        self, lines: list[str], references: list[str], function: str = "attention"
    ) -> dict[str, np.ndarray]:
        """Return every layer's attention: "encoder" (B, N, h, S, S), "decoder" (B, N, h, T, T) and
        "cross" (B, N, h, T, S); and, as bytes, "source_pieces" (B, S) and "target_pieces" (B, T).
        """
        if not self._gives_attention:
            raise ValueError(
                "an ensemble has no attention of its own: name the folder of one of its runs."
            )
        answer = getattr(self._module, function)(as_bytes(lines), as_bytes(references))
        return {name: tensor.numpy() for name, tensor in answer.items()}

    def cross_attention(
        self, lines: list[str], references: list[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pieces (B, S) and (B, T), without labels, and attention, (B, N, h, T, S)."""
        answer = self.attention(lines, references, "align")
        return answer["source_pieces"], answer["target_pieces"], answer["attention"]


def as_pieces(rows: np.ndarray) -> list[list[str]]:
    """Return lists of strings, from bytes (B, L) in which "" is padding."""
    return [as_strings([piece for piece in row if piece]) for row in rows]


def _hypothesis(text, score, pieces, log_probabilities):
    [pieces] = as_pieces([pieces])
    [text] = as_strings([text])
    return Hypothesis(text, float(score), pieces, log_probabilities[: len(pieces)].tolist())
