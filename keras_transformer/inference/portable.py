"""A folder that `inference.portable_export` wrote, run without TensorFlow and without Keras: ONNX
Runtime or LiteRT has the model, SentencePiece the vocabulary, NumPy the search.
"""

import copy
import dataclasses
import functools
import hashlib
import pathlib
import re
from collections.abc import Callable, Mapping

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
DRAWING = ("samples", "temperature", "top_k", "top_p", "seed")


class Portable:
    """What `Translator` calls of such a folder, as `Live`; `options` replace the exported ones.

    Attributes:
        options: the `DecodingOptions` that it decodes with.
        labels: the ids of labels of languages: see `LanguageLabels`.
        reads_source: whether it translates; a language model goes on from its text.
        positions: see `most_positions`.
        has_blocks: whether it searches in blocks.
        platform: what the Open Inference Protocol calls its kind.
    """

    def __init__(self, folder: pathlib.Path, options: Mapping):
        self._folder = folder
        description = read_description(folder / "model.json")
        self._exported = description.get("decoding", {})
        both = vocabularies.load(folder)
        self.labels = language_labels(both.target)
        # How many of the first tokens say languages.
        self._given = 1 if self.labels else 0
        self._model = GraphModel(folder, portable_format(folder))
        self.has_blocks = self._model.block_size > 1
        self.options = self._of(self._exported, options)
        self._source = both.source.processor
        self._target = both.target.processor
        self._marks = TextMarks(both.protected) if both.protected else None
        self._learned_terms = bool(both.protected and both.protected.glossary_rate)
        self._puts_terms_in = bool(both.protected and both.protected.puts_terms_in)
        self._ids_of_marks = [
            np.array([side.piece_to_id(mark) for mark in MARKS])
            for side in (self._source, self._target)
        ]
        # Its tables take long to make: requests share them.
        self._forbidding = functools.lru_cache(8)(
            lambda words: ForbiddenWords(words, both.target.spelled)
        )
        self.reads_source = self._model.has_encoder
        self.positions = most_positions(description)
        self.platform = self._model.platform

    @property
    def sentencepiece_models(self) -> list[bytes]:
        return [one.serialized_model_proto() for one in (self._source, self._target)]

    def replaced(self, options: Mapping, stop: Callable[[], None]) -> "Portable":
        """The same model with other options in place of the exported ones, which calls a function
        before each step of the search; it may raise.
        """
        other = copy.copy(self)
        other.options = self._of(self._exported, options)
        other._model = self._model.stopped_by(stop)
        return other

    def check(self, options: Mapping) -> None:
        self._of({}, options)

    def lengths(self, lines: list[str]) -> list[int]:
        return [len(ids) + 1 for ids in self._sources(lines)]

    def target_lengths(self, references: list[str]) -> list[int]:
        return [len(ids) + 1 for ids in _encoded(self._target, map(_in_unicode, references))]

    def has_piece(self, piece: str) -> bool:
        return piece not in RESERVED and self._source.piece_to_id(piece) != self._source.unk_id()

    def translate(self, lines: list[str]) -> list[str]:
        return self._texts(lines, self.options)

    def translate_in_detail(self, lines: list[str], prefixes: list[str]) -> list[list[Hypothesis]]:
        lines, found = self._found(lines, self._targets_of(lines, prefixes), self.options)
        if self.options.repetition_penalty == 1.0:
            logs = [[one.log_probabilities for one in of_line] for of_line in found]
        else:
            pairs = zip(lines, found, strict=True)
            # The search's are those of the changed distribution.
            logs = [
                self._forced([line] * len(one), [ids[:-1] for _, ids, _ in one])
                for line, one in pairs
            ]
        return [
            [
                Hypothesis(
                    self._text(line, one.ids), one.score, self._target.id_to_piece(one.ids), values
                )
                for one, values in zip(of_line, of_each, strict=True)
            ]
            for line, of_line, of_each in zip(lines, found, logs, strict=True)
        ]

    def translate_with_penalties(
        self, beam_size: int, length_penalties: list[float], lines: list[str]
    ) -> list[list[str]]:
        columns = []
        for penalty in length_penalties:
            search = {"beam_size": beam_size, "length_penalty": penalty}
            columns.append(self._texts(lines, dataclasses.replace(self.options, **search)))
        return [list(row) for row in zip(*columns, strict=True)]

    def score(self, lines: list[str], references: list[str]) -> list[tuple[float, int]]:
        logs = self._forced(lines, self._targets_of(lines, references))
        return [(sum(values), len(values)) for values in logs]

    def next_pieces(self, line: str, prefix: str, count: int, **drawing) -> tuple:
        """The likeliest pieces after a line's prefix, pieces joined by spaces; how likely each is
        to be drawn by the arguments of `shares`, and how likely the model finds it.
        """
        ids = [self._target.piece_to_id(one) for one in prefix.split()][:MAX_SOURCE_LENGTH]
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

    def _of(self, exported, given):
        """The exported options, replaced by those that are given; a beam replaces samples."""
        given = {name: value for name, value in given.items() if value is not None}
        check_languages(given, self.labels, self._folder)
        if not given.get("samples") and {"beam_size", "length_penalty", "samples"} & given.keys():
            exported = {name: exported[name] for name in exported if name not in DRAWING}
        options = options_of_run(given, exported)
        refuse_unknown(options)
        check_heads(options, self.has_blocks)
        return options

    def _forced(self, lines, targets):
        """Log P of each token of targets, ids."""
        forced = DecodingOptions(beam_size=1, max_length=1, min_length=1, protect_all=False)
        most = MAX_SOURCE_LENGTH - 1 - self._given
        _, found = self._found(lines, [ids[:most] for ids in targets], forced)
        return [one.log_probabilities for [one] in found]

    def _texts(self, lines, options):
        lines, found = self._found(lines, [[]] * len(lines), options)
        return [
            self._text(line, of_line[0].ids) if of_line else ""
            for line, of_line in zip(lines, found, strict=True)
        ]

    def _marked(self, line):
        """A line with marks in the place of its protected spans."""
        line = _in_unicode(line)
        return self._marks.marked(line) if self._marks else MarkedText(line, (), False)

    def _sources(self, lines):
        texts = [self._marked(line).text for line in lines]
        return self._labelled("source_language", _encoded(self._source, texts))

    def _cut_sources(self, lines):
        return [ids[: most_read(self.positions) - 1] for ids in self._sources(lines)]

    def _labelled(self, name, rows):
        """Ids, behind the label of their language if the model has labels."""
        label = self.labels.get(getattr(self.options, name))
        return [[label, *ids] for ids in rows] if self.labels else rows

    def _targets_of(self, lines, targets):
        """The ids of targets with the marks that their lines have."""
        targets = map(_in_unicode, targets)
        if self._marks:
            targets = map(self._marks.marked_as, targets, map(self._marked, lines))
        return _encoded(self._target, targets)

    def _spans(self, lines, sources):
        """The marks that must come of lines, whose ids are given."""
        of_source, of_target = self._ids_of_marks
        count = [(np.array(ids)[:, None] == of_source).sum(axis=0) for ids in sources]
        opened_by = [self._marks.openings(self._marked(line).spans) for line in lines]
        shape = (-1, len(MARKS))
        return Spans(of_target, np.reshape(count, shape), np.reshape(opened_by, shape))

    def _found(self, lines, prefixes, options):
        """The lines that were translated, and what is found for each, after its prefix: those with
        the most of its terms first, see `Preference`. Where the best lacks one, all terms are put
        in, see `TextModule.search_for_terms`.
        """
        terms = [re.findall(TERM, line) if self._learned_terms else [] for line in lines]
        if options.samples or not any(terms):
            return lines, self._searched(lines, prefixes, options)
        beam, _ = beam_and_penalty(options)
        whole = dataclasses.replace(options, num_hypotheses=beam)
        rows = [*map(self._most_first, lines, terms, self._searched(lines, prefixes, whole))]
        found = [of_line[: options.num_hypotheses] for of_line, _ in rows]
        lacking = [at for at, (_, lacks) in enumerate(rows) if lacks and not prefixes[at]]
        if not (self._puts_terms_in and options.protect_all and lacking):
            return lines, found
        put_in = {at: re.sub(TERM, AS_SPAN, lines[at]) for at in lacking}
        again = self._searched([*put_in.values()], [[]] * len(put_in), options)
        for at, of_line in zip(put_in, again, strict=True):
            found[at] = of_line
        return [put_in.get(at, line) for at, line in enumerate(lines)], found

    def _most_first(self, line, terms, found):
        """What was found for a line, what lacks fewer terms first, and how many the first lacks."""
        texts = [self._text(line, one.ids) for one in found]
        lacks = [sum(term not in text for _, term in terms) for text in texts]
        order = sorted(range(len(found)), key=lacks.__getitem__)
        return [found[place] for place in order], min(lacks, default=len(terms))

    def _searched(self, lines, prefixes, options):
        sources = self._cut_sources(lines)
        lengths = [len(ids) + 1 for ids in sources]
        words = options.forbidden_words
        forbidden = self._forbidding(words) if words else None
        kind = NumpyBlocks if options.blockwise else NumpySearch
        search = kind(options, self._target.vocab_size(), forbidden, self._given)
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
        # A blank line has an empty translation; a text begins with whatever its prompt is.
        if self.reads_source and not _in_unicode(line).encode().strip():
            return ""
        text = self._target.decode([one for one in ids if one not in (PAD, EOS)])
        return self._marks.put_back(text, self._marked(line)) if self._marks else text


def _in_unicode(line):
    return line.encode(errors="replace").decode()


def _encoded(processor, lines):
    # One by one: for a list SentencePiece starts threads, which takes longer than a sentence.
    return [processor.encode(line) for line in lines]


def _in_tokens(name, length, lengths):
    """A length for sources of so many tokens, at least 1."""
    return [max(in_tokens(parse_length(name, length), source), 1) for source in lengths]


def _seed(line):
    """A number of a line alone, so that its samples do not depend on its neighbours."""
    digest = hashlib.blake2b(line.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2
