"""`Translator.load(path).translate(lines)`, by a run, a SavedModel, or ONNX or LiteRT graphs."""

import collections
import functools
import os
import re
from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference.line_batches import (
    SHORTEN,
    TARGET,
    checked_lengths,
    in_batches,
    join,
    listed,
    split,
)
from keras_transformer.inference.live import Hypothesis, Live, as_pieces
from keras_transformer.inference.loading import load_model
from keras_transformer.saved_models.signature import as_bytes, as_strings
from pipelines.vocabularies.protected_spans import MARKS, MOST, TERM, ProtectedSpans
from pipelines.vocabularies.vocabulary import SPACE

__all__ = ["Hypothesis", "Translator"]


class Translator:
    """Translates lists of strings. The translation of a line does not depend on the others.

    Construct it from a `TranslationModule`, or `load` it: then `description` is its `model.json`.

    Example:
        translator = Translator.load("runs/home_assistant_en_de")
        translator.translate(["Turn off the lights."])
    """

    def __init__(self, module):
        self._model = Live(module, module.gives_attention)
        self.description: dict = {}

    @classmethod
    def load(
        cls,
        path: str | os.PathLike | Sequence[str | os.PathLike],
        precision: str = "float32",
        **options,
    ) -> "Translator":
        """Load a trained or an exported model.

        Args:
            path: a run's folder; a checkpoint in one (.npz); several of them for an ensemble, as a
                list or joined by commas; the folder of an export, or of its numbered versions, the
                newest of which is loaded.
            precision: "float32", or "bfloat16", which takes half the memory and is faster on
                processors that multiply it. An export has its own.
            options: those of `DecodingOptions`; None: as the run was trained, or the export was
                made. A SavedModel takes beam_size, length_penalty, length_penalty_form, max_length
                and num_hypotheses, or samples=1, temperature and seed.

        Raises:
            FileNotFoundError: if there is no model.
            ValueError: if the model is damaged, or if options are out of range, exclude each other,
                or are not among a SavedModel's.
        """
        translator = cls.__new__(cls)
        translator._model, translator.description = load_model(path, precision, options)
        return translator

    def translate(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
        split_sentences: bool = False,
        batch_tokens: int | None = None,
        batches_at_once: int = 1,
        report: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[str]:
        """Translate lines.

        Args:
            lines: strings.
            prefixes: for each line, the beginning of its translation; "" for any beginning.
            split_sentences: translate each sentence of a line on its own, and join the translations
                by a space. A tag before the line, such as "<2de>", applies to each sentence.
            batch_tokens: source tokens in a batch of lines of similar length, padding included.
                Default: 2,048, or fewer if a thread would otherwise be idle.
            batches_at_once: number of threads that decode a batch each; see `spread_over_cores`.
            report: called after each batch with the number of its lines, or of its sentences with
                `split_sentences`.
            numbers: the number of each line for errors, by default from 1.

        Returns:
            The translation of each line, in order; "" for an empty or blank line.

        Raises:
            ValueError: naming the first line that is too long for the model, before it translates.
        """
        batching = (batch_tokens, batches_at_once, report)
        if split_sentences:
            if prefixes is not None:
                raise ValueError(
                    "`split_sentences` and `prefixes` exclude each other: a prefix belongs to "
                    "one sentence."
                )
            language = self.description.get("corpus", {}).get("source_language", "en")
            protected = ProtectedSpans.in_description(self.description)
            spans = protected and re.compile(f"{TERM}|{protected.in_python.pattern}", re.ASCII)
            sentences, counts = split(listed(lines), language, self._model.has_piece, spans)
            of_lines = np.repeat(numbers or range(1, len(counts) + 1), counts).tolist()
            named = "a sentence of line {}"
            lengths_of = self._model.lengths
            lengths = checked_lengths(lengths_of, sentences, named, SHORTEN, numbers=of_lines)
            translate = self._model.translate
            return join(in_batches(translate, [sentences], lengths, *batching), counts)
        if prefixes is not None:
            details = self.translate_in_detail(lines, prefixes, *batching, numbers)
            return [hypotheses[0].text if hypotheses else "" for hypotheses in details]
        return self._in_batches(self._model.translate, batching, lines, numbers=numbers)

    def translate_in_detail(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
        batch_tokens: int | None = None,
        batches_at_once: int = 1,
        report: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Translate lines as `translate` does, and return all hypotheses, with log P and scores.

        Returns:
            For each line up to `num_hypotheses` of `Hypothesis`, best first.

        Raises:
            ValueError: as `translate`, and where a SavedModel has no scores.
        """
        lines = listed(lines)
        prefixes = [""] * len(lines) if prefixes is None else prefixes
        batching = (batch_tokens, batches_at_once, report)
        named = {"name": "prefixes", "named": "of the prefixes, line {}", "numbers": numbers}
        return self._in_batches(self._model.translate_in_detail, batching, lines, prefixes, **named)

    def translate_with_penalties(
        self,
        lines: Sequence[str],
        beam_size: int,
        length_penalties: Sequence[float],
        batch_tokens: int | None = None,
        batches_at_once: int = 1,
        report: Callable[[int], None] | None = None,
    ) -> list[list[str]]:
        """Translate lines by each of several length penalties, to choose one. A run's model
        searches once for all of them, a SavedModel once for each.

        Args:
            lines, batch_tokens, batches_at_once, report: as in `translate`.
            beam_size, length_penalties: in place of those of `load`.

        Returns:
            For each line the translation by each penalty, in their order.
        """
        penalties = list(length_penalties)
        for penalty in penalties:
            self.check(beam_size=beam_size, length_penalty=penalty)
        if not penalties:
            return [[] for _ in listed(lines)]
        search = functools.partial(self._model.translate_with_penalties, beam_size, penalties)
        return self._in_batches(search, (batch_tokens, batches_at_once, report), lines)

    def check(self, **options) -> None:
        """Refuse options that `translate_with_penalties` cannot search with."""
        DecodingOptions(**options)
        self._model.check(options)

    def score(
        self, lines: Sequence[str], references: Sequence[str], batch_tokens: int | None = None
    ) -> list[tuple[float, int]]:
        """Score translations by their probability under the model.

        Args:
            lines: strings.
            references: the translation of each line.
            batch_tokens: as in `translate`.

        Returns:
            For each pair log P(Y | X) in nats, and |Y|, its number of tokens; both include EOS.

        Raises:
            ValueError: for unequal numbers of strings, a line or reference that is too long, or a
                SavedModel that cannot do this.
        """
        return self._in_batches(self._model.score, (batch_tokens,), lines, references)

    def align(
        self, lines: Sequence[str], references: Sequence[str], batch_tokens: int | None = None
    ) -> list[list[tuple[int, int]]]:
        """Align the words of lines and of their translations; arguments as in `score`.

        Returns:
            For each pair a list of (source word, target word), one for each target word: indices
            of words, which spaces separate.

        Raises:
            ValueError: as in `attention` and `score`.
        """
        return self._in_batches(self._links, (batch_tokens,), lines, references)

    def attention(self, line: str, translation: str) -> dict[str, np.ndarray | list[str]]:
        """Return every layer's attention weights for a line and a translation.

        Returns:
            A dictionary: "source_pieces" and "target_pieces", lists of S and T strings, EOS the
            last; "encoder" (N, h, S, S), "decoder" (N, h, T, T) and "cross" (N, h, T, S), float32
            arrays. Row t of "decoder" and "cross" belongs to the step that predicts target piece t.

        Raises:
            ValueError: if the model is an ensemble, or a SavedModel that cannot do this.
        """
        for name, text in (("line", line), ("translation", translation)):
            if not isinstance(text, str):
                raise ValueError(f"`{name}` must be a string. Received: {text!r:.80}.")
        checked_lengths(self._model.lengths, [line])
        checked_lengths(self._model.target_lengths, [translation], "the translation", SHORTEN)
        answer = self._model.attention([line], [translation])
        pieces = {name: as_pieces(answer[name])[0] for name in ("source_pieces", "target_pieces")}
        return {name: array[0] for name, array in answer.items()} | pieces

    def _links(self, lines, references):
        """Return word links by the mean of the heads of the last layer but one, or the only one."""
        sources, targets, attention = self._model.cross_attention(lines, references)
        weights = attention[:, max(attention.shape[1] - 2, 0)].mean(axis=1)
        marks = self._model.marks
        spans = marks.marked(as_bytes(lines)).spans.to_list() if marks else [[]] * len(lines)
        sides = (as_pieces(sources), as_pieces(targets))
        return [_linked(*row) for row in zip(*sides, map(as_strings, spans), weights, strict=True)]

    def _in_batches(
        self, function, batching, lines, *targets, name="references", named=TARGET, numbers=None
    ):
        """Call a function of lines and targets in batches; the last three are for errors."""
        lines = listed(lines)
        targets = [listed(column, name) for column in targets]
        lengths = [checked_lengths(self._model.lengths, lines, numbers=numbers)]
        for column in targets:
            if len(column) != len(lines):
                raise ValueError(
                    f"`{name}` must be as many as `lines`, {len(lines):,}. Received: "
                    f"{len(column):,}."
                )
            lengths_of = self._model.target_lengths
            lengths.append(checked_lengths(lengths_of, column, named, SHORTEN, numbers=numbers))
        longest = [max(row) for row in zip(*lengths, strict=True)]
        return in_batches(function, [lines, *targets], longest, *batching)


def link_words(
    source_pieces: list[str], target_pieces: list[str], attention: np.ndarray
) -> list[tuple[int, int]]:
    """Link every target word to the source word that its pieces attend to most (Vaswani et al.
    2017, section 3.2.3 and appendix). Return pairs of indices (source word, target word), in the
    order of target words; none if a side has no words. "▁" begins a word; the last of the S source
    pieces and of the T target pieces is EOS; attention is (T, S).
    """
    source_words = _words(source_pieces[:-1])
    target_words = _words(target_pieces[:-1])
    if not source_words or not target_words:
        return []
    attention = np.asarray(attention, np.float64)[: len(target_words), : len(source_words)]
    between = np.zeros((target_words[-1] + 1, source_words[-1] + 1))
    np.add.at(between, np.ix_(target_words, source_words), attention)
    return [(int(row.argmax()), word) for word, row in enumerate(between)]


def _linked(source, target, spans, attention):
    source, columns = _with_spans(source, spans)
    target, rows = _with_spans(target, spans)
    return link_words(source, target, attention[np.ix_(rows, columns)])


def _with_spans(pieces, spans):
    """Replace marks by the words of their spans. Return the pieces, and the index each had."""
    rows = []
    times = collections.Counter()
    for number, piece in enumerate(pieces):
        place = MARKS.index(piece) + MOST * times[piece] if piece in MARKS else len(spans)
        times[piece] += 1
        words = re.findall(r"\s*\S+|\s+", spans[place]) if place < len(spans) else [piece]
        rows += [(re.sub(r"^\s+", SPACE, word), number) for word in words]
    return tuple(zip(*rows, strict=True))


def _words(pieces):
    """Return the index of each piece's word. A "▁" alone begins the word of the next piece."""
    begins = [not n or piece[:1] == SPACE != pieces[n - 1] for n, piece in enumerate(pieces)]
    return (np.cumsum(begins, dtype=int) - 1).tolist()
