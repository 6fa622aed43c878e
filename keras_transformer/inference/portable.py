"""Run an export of `inference.portable_export` without TensorFlow and Keras: the model by ONNX
Runtime or LiteRT, the vocabulary by SentencePiece, the search by NumPy.
"""

import copy
import dataclasses
import functools
import hashlib
import pathlib
import re
from collections.abc import Callable, Mapping
from unicodedata import category

import numpy as np

from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH, in_tokens, most_read, parse_length
from keras_transformer.decoding.numpy_blocks import NumpyBlocks
from keras_transformer.decoding.numpy_rules import Spans, refuse_unknown, shares
from keras_transformer.decoding.numpy_search import NumpySearch, beam_and_penalty
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.decoding.remembered_options import (
    check_heads,
    check_languages,
    options_of_run,
)
from keras_transformer.inference.live import Hypothesis
from keras_transformer.inference.portable_graphs import GraphModel
from keras_transformer.runs.description import most_positions, read_description
from keras_transformer.saved_models.versions import portable_format
from pipelines import vocabularies
from pipelines.special_ids import EOS, PAD
from pipelines.vocabularies.other_order import language_labels
from pipelines.vocabularies.protected_spans import AS_SPAN, MARKS, TERM, MarkedText, TextMarks
from pipelines.vocabularies.vocabulary import RESERVED

GOLDEN = "golden.jsonl"
# Categories of the characters of a blank line: spaces, breaks, controls, and marks without width.
BLANK = {"Zs", "Zl", "Zp", "Cc", "Cf"}


class Portable:
    """Such an export, as `Translator` calls it: see `Live`. `options` replace the exported ones.

    Attributes:
        options: the `DecodingOptions` that it decodes with.
        labels: the ids of labels of languages: see `LanguageLabels`.
        reads_source: whether it translates; a language model continues its text.
        positions: see `most_positions`.
        has_blocks: whether it can decode blockwise.
        platform: the Open Inference Protocol's name for its kind of model.
    """

    def __init__(self, folder: pathlib.Path, options: Mapping):
        self._folder = folder
        description = read_description(folder / "model.json")
        self._exported = description.get("decoding", {})
        vocabulary = vocabularies.load(folder)
        self.labels = language_labels(vocabulary.target)
        # Tokens of a target that are not searched for: its label.
        self._given_tokens = 1 if self.labels else 0
        self._model = GraphModel(folder, portable_format(folder))
        self.has_blocks = self._model.block_size > 1
        self.options = self._decoding_options(self._exported, options)
        self._source = vocabulary.source.processor
        self._target = vocabulary.target.processor
        protected = vocabulary.protected
        self._marks = TextMarks(protected) if protected else None
        self._learned_terms = bool(protected and protected.glossary_rate)
        self._puts_terms_in = bool(protected and protected.puts_terms_in)
        self._ids_of_marks = [
            np.array([side.piece_to_id(mark) for mark in MARKS])
            for side in (self._source, self._target)
        ]
        # Requests share its tables, which take long to compute.
        self._forbidden_words = functools.lru_cache(8)(
            lambda words: ForbiddenWords(words, vocabulary.target.spelled)
        )
        self.reads_source = self._model.has_encoder
        self.positions = most_positions(description)
        self.platform = self._model.platform

    @property
    def sentencepiece_models(self) -> list[bytes]:
        return [side.serialized_model_proto() for side in (self._source, self._target)]

    def replaced(self, options: Mapping, stop: Callable[[], None]) -> "Portable":
        """Return a copy with some exported options replaced. It calls `stop`, which may raise,
        before each step of the search.
        """
        twin = copy.copy(self)
        twin.options = self._decoding_options(self._exported, options)
        twin._model = self._model.stopped_by(stop)
        return twin

    def check(self, options: Mapping) -> None:
        self._decoding_options({}, options)

    def lengths(self, lines: list[str]) -> list[int]:
        return [len(ids) + 1 for ids in self._sources(lines)]

    def target_lengths(self, references: list[str]) -> list[int]:
        ends = 1 + self._given_tokens
        return [len(ids) + ends for ids in _encoded(self._target, map(_in_unicode, references))]

    def has_piece(self, piece: str) -> bool:
        return piece not in RESERVED and self._source.piece_to_id(piece) != self._source.unk_id()

    def translate(self, lines: list[str]) -> list[str]:
        return self._texts(lines, self.options)

    def translate_in_detail(self, lines: list[str], prefixes: list[str]) -> list[list[Hypothesis]]:
        targets = self._target_ids(lines, prefixes)
        lines, nbest = self._search_for_terms(lines, targets, self.options)
        if self.options.repetition_penalty == 1.0:
            logs = [[values for _, _, values in hypotheses] for hypotheses in nbest]
        else:
            # The search computed them from the penalized distribution.
            logs = [
                self._score_ids([line] * len(hypotheses), [ids[:-1] for _, ids, _ in hypotheses])
                for line, hypotheses in zip(lines, nbest, strict=True)
            ]
        piece = self._target.id_to_piece
        return [
            [
                Hypothesis(self._text(line, ids), score, piece(ids), values)
                for (score, ids, _), values in zip(hypotheses, of_line, strict=True)
            ]
            for line, hypotheses, of_line in zip(lines, nbest, logs, strict=True)
        ]

    def translate_with_penalties(
        self, beam_size: int, length_penalties: list[float], lines: list[str]
    ) -> list[list[str]]:
        search = functools.partial(self._decoding_options, dataclasses.asdict(self.options))
        new = [{"beam_size": beam_size, "length_penalty": alpha} for alpha in length_penalties]
        columns = (self._texts(lines, search(options)) for options in new)
        return [list(row) for row in zip(*columns, strict=True)]

    def score(self, lines: list[str], references: list[str]) -> list[tuple[float, int]]:
        most = MAX_SOURCE_LENGTH - 1 - self._given_tokens
        targets = [ids[:most] for ids in self._target_ids(lines, references)]
        return [(sum(values), len(values)) for values in self._score_ids(lines, targets)]

    def next_pieces(self, line: str, prefix: str, count: int, **drawing) -> tuple:
        """Return the `count` likeliest pieces after a prefix (pieces joined by spaces), the
        probability of drawing each by the arguments of `shares`, and that of the model.
        """
        # Bytes are split at ASCII's spaces alone, as in a SavedModel.
        pieces = (piece.decode() for piece in prefix.encode(errors="replace").split())
        ids = [*map(self._target.piece_to_id, pieces)][:MAX_SOURCE_LENGTH]
        [source] = self._cut_sources([line])
        if self.reads_source:
            [ids] = self._labelled("target_language", [ids])
        else:
            ids = [*source, *ids][: most_read(self.positions) - 1]
        logs, tokens = self._model.last_step(source, ids, self._target.vocab_size())
        pieces = self._target.id_to_piece(tokens[:count].tolist())
        return pieces, shares(logs, **drawing)[:count], np.exp(logs[:count])

    def attention(self, lines: list[str], references: list[str]) -> dict[str, np.ndarray]:
        raise ValueError(
            f"{self._folder} has no attention: it was exported to translate. Name the folder of "
            "the run, or of its SavedModel."
        )

    cross_attention = attention

    def _decoding_options(self, exported, options):
        """Replace exported options by those that are not None."""
        new = {name: value for name, value in options.items() if value is not None}
        check_languages(new, self.labels, self._folder)
        decoding = options_of_run(new, exported)
        refuse_unknown(decoding)
        check_heads(decoding, self.has_blocks)
        return decoding

    def _score_ids(self, lines, targets):
        """Return log P of each token of targets, lists of ids: a search whose prefixes they are."""
        options = DecodingOptions(beam_size=1, max_length=1, min_length=1, protect_all=False)
        _, nbest = self._search_for_terms(lines, targets, options)
        return [hypothesis.log_probabilities for [hypothesis] in nbest]

    def _texts(self, lines, options):
        lines, nbest = self._search_for_terms(lines, [[]] * len(lines), options)
        return [
            self._text(line, hypotheses[0].ids) if hypotheses else ""
            for line, hypotheses in zip(lines, nbest, strict=True)
        ]

    def _marked(self, line):
        """Replace the protected spans of a line by marks."""
        line = _in_unicode(line)
        return self._marks.marked(line) if self._marks else MarkedText(line, (), False)

    def _sources(self, lines):
        texts = [self._marked(line).text for line in lines]
        return self._labelled("source_language", _encoded(self._source, texts))

    def _cut_sources(self, lines):
        return [ids[: most_read(self.positions) - 1] for ids in self._sources(lines)]

    def _labelled(self, name, rows):
        """Put the label of their language before rows of ids, if the model has labels."""
        label = self.labels.get(getattr(self.options, name))
        return [[label, *ids] for ids in rows] if self.labels else rows

    def _target_ids(self, lines, targets):
        """Return the ids of targets, marked as their lines are."""
        targets = map(_in_unicode, targets)
        if self._marks:
            targets = map(self._marks.marked_as, targets, map(self._marked, lines))
        return _encoded(self._target, targets)

    def _spans(self, lines, sources):
        """Return the marks that must come in the targets of lines, whose ids are `sources`."""
        source_marks, target_marks = self._ids_of_marks
        count = [(np.array(ids)[:, None] == source_marks).sum(axis=0) for ids in sources]
        opened_by = [self._marks.openings(self._marked(line).spans) for line in lines]
        shape = (-1, len(MARKS))
        return Spans(target_marks, np.reshape(count, shape), np.reshape(opened_by, shape))

    def _search_for_terms(self, lines, prefixes, options):
        """Return the lines as translated, and the hypotheses of each line after its prefix, those
        with the most of its terms first (see `Preference`). If the best lacks a term, translate the
        line again with all terms put in (see `TextModule.search_for_terms`).
        """
        terms = [re.findall(TERM, line) if self._learned_terms else [] for line in lines]
        if options.samples or not any(terms):
            return lines, self._search(lines, prefixes, options)
        beam, _ = beam_and_penalty(options)
        whole = dataclasses.replace(options, num_hypotheses=beam)
        ranked = [*map(self._rank_by_terms, lines, terms, self._search(lines, prefixes, whole))]
        nbest = [hypotheses[: options.num_hypotheses] for hypotheses, _ in ranked]
        lacking = [n for n, (_, missing) in enumerate(ranked) if missing and not prefixes[n]]
        if not (self._puts_terms_in and options.protect_all and lacking):
            return lines, nbest
        with_terms = {n: re.sub(TERM, AS_SPAN, lines[n]) for n in lacking}
        again = self._search([*with_terms.values()], [[]] * len(with_terms), options)
        for n, hypotheses in zip(with_terms, again, strict=True):
            nbest[n] = hypotheses
        return [with_terms.get(n, line) for n, line in enumerate(lines)], nbest

    def _rank_by_terms(self, line, terms, hypotheses):
        """Return hypotheses, those that miss the fewest terms first, and that smallest number."""
        texts = [self._text(line, hypothesis.ids) for hypothesis in hypotheses]
        missing = [sum(term not in text for _, term in terms) for text in texts]
        order = sorted(range(len(hypotheses)), key=missing.__getitem__)
        return [hypotheses[n] for n in order], min(missing, default=len(terms))

    def _search(self, lines, prefixes, options):
        sources = self._cut_sources(lines)
        lengths = [len(ids) + 1 for ids in sources]
        words = options.forbidden_words
        forbidden = self._forbidden_words(words) if words else None
        kind = NumpyBlocks if options.blockwise else NumpySearch
        search = kind(options, self._target.vocab_size(), forbidden, self._given_tokens)
        return search(
            self._model,
            self._model.encode(sources),
            np.minimum(_in_tokens("max_length", options.max_length, lengths), self.positions),
            _in_tokens("min_length", options.min_length, lengths),
            self._labelled("target_language", prefixes) if self.reads_source else sources,
            list(map(_seed, lines)),
            self._spans(lines, sources) if self._marks and options.protect_all else None,
        )

    def _text(self, line, ids):
        # A blank line has an empty translation, but a blank prompt may be continued.
        if self.reads_source and BLANK.issuperset(map(category, _in_unicode(line))):
            return ""
        text = self._target.decode([token for token in ids if token not in (PAD, EOS)])
        return self._marks.put_back(text, self._marked(line)) if self._marks else text


def _in_unicode(line):
    return line.encode(errors="replace").decode()


def _encoded(processor, lines):
    # One at a time: for a list SentencePiece starts threads, which takes longer than a sentence.
    return [processor.encode(line) for line in lines]


def _in_tokens(name, length, lengths):
    """Return a length such as "1.5x" in tokens, at least 1, for sources of some lengths."""
    return [max(in_tokens(parse_length(name, length), source), 1) for source in lengths]


def _seed(line):
    """Return a seed from a line, so that its samples do not depend on the rest of the batch."""
    digest = hashlib.blake2b(line.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2
