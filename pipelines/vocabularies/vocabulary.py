"""Text to ids and back: a SentencePiece vocabulary, by default shared by both languages (Vaswani et
al. 2017, section 5.1).

Text is not normalized, and byte fallback spells what no piece covers. So any text survives the
round trip, apart from runs of spaces, and a model can write every character.
"""

import collections
import contextlib
import functools
import hashlib
import io
import itertools
import logging
import os
import pathlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import sentencepiece

from pipelines.special_ids import BOS, EOS, PAD, UNK, Marks
from pipelines.vocabularies import longest_match
from pipelines.vocabularies.model_proto import with_symbols
from pipelines.vocabularies.tokenizers import operation
from pipelines.whole_files import write_whole

BYTES = 256
# What stands for a hidden piece: a tag of vocabularies that hide any.
MASK = "<mask>"
# How SentencePiece writes a space.
SPACE = "\u2581"
# Four bytes for each of the 100,000 characters that corpora allow.
LONGEST_IN_BYTES = 400_000
RESERVED = {"<pad>", "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(BYTES))}

# U+2581 becomes a space. SentencePiece writes spaces so, and cannot tell the two apart anyway. With
# no rule at all, its TensorFlow operation writes a line to stderr whenever a model is loaded.
NORMALIZATION = "2581\t20\n"
# A model says which file its rules came from, here a temporary one. Protocol buffers are merged by
# joining them: this is a ModelProto whose NormalizerSpec (field 3) names no file (field 6).
NO_FILE = b"\x1a\x02\x32\x00"
# SentencePiece lets no piece cross the first, and passes over lines with the second.
BOUNDARY = "\0"
UNUSABLE = "\u2585"
# These and the two ways of writing a space are no characters of pieces, or have their piece anyway.
COUNTED_OTHERWISE = (BOUNDARY, UNUSABLE, " ", SPACE)

logger = logging.getLogger(__name__)


def learn(
    lines: Iterable[str], size: int, tags: Iterable[str] = (), model_type: str = "bpe"
) -> "Vocabulary":
    """Learn a vocabulary of the training side's text. If it is smaller than asked for, or leaves
    characters to bytes because there are too many, that is logged.

    Args:
        lines: of all languages that share it.
        size: most pieces, with the 4 special ones, 256 bytes and the tags. A text that holds fewer
            gives all that it holds; one with more characters leaves the rarest to bytes.
        tags: strings such as "<2de>" that tell the model what to do. Each is one piece wherever it
            stands, and no other piece crosses it.
        model_type: "bpe", byte-pair encoding (Sennrich et al. 2016), which merges the most frequent
            pairs; "unigram" (Kudo 2018), which keeps the pieces that make the text most likely;
            or "word_piece", as the paper has for English-French: see `longest_match`.
    """
    tags = list(tags)
    if taken := sorted({tag for tag in tags if tag in RESERVED or tags.count(tag) > 1}):
        raise ValueError(
            "`tags` must differ from each other and from the special pieces and bytes. "
            f"Received: {', '.join(taken)}. Choose another name."
        )
    room = size - BYTES - 4 - len(tags)
    if room < 1:
        of_tags = f"{len(tags)} tags, " if tags else ""
        raise ValueError(
            f"`vocabulary_size` must be at least {size - room + 1}: 4 special pieces, 256 bytes, "
            f"{of_tags}1 of text. Received: {size}."
        )
    lines = list(lines)
    with contextlib.suppress(RuntimeError):
        return Vocabulary(_train(lines, size, tags, model_type))
    try:
        for common in _without_rarest(lines, room, tags):
            learned = Vocabulary(_train(common, size, tags, model_type, hard_vocab_limit=False))
            if learned.size == size:
                break
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ValueError(
            f"no vocabulary could be learned from the {len(lines):,} lines of the training text: "
            f"{reason}. Check the text."
        ) from error
    if learned.size < size:
        logger.info("%s pieces, all that this text holds", f"{learned.size:,}")
    return learned


def _train(lines, size, tags, model_type, **limits):
    """The bytes of a SentencePiece model."""
    if model_type == "word_piece":
        room = size - 4 - BYTES - len(tags)
        pieces = longest_match.learned(_without(tags, lines), room, tags, **limits)
        # Of characters, the first two of which are left out.
        made = _train(["a"], size - room + 2, tags, "char", hard_vocab_limit=False)
        return with_symbols(made, size - room, pieces)
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(NORMALIZATION)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            model_type=model_type,
            byte_fallback=True,
            normalization_rule_tsv=rules.name,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            user_defined_symbols=tags,
            # SentencePiece leaves out longer ones, by default those over 4,192 bytes.
            max_sentence_length=LONGEST_IN_BYTES,
            minloglevel=2,
            **limits,
        )
    named = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue() + NO_FILE)
    return named.serialized_model_proto()


def _without_rarest(lines: Sequence[str], room: int, tags: Sequence[str]) -> Iterator[list[str]]:
    """Lines to learn pieces from, in which `BOUNDARY` stands for tags, and for the rarest
    characters if there is no room for all.

    In the first result the others take half of the room, because a text has fewer tokens if
    frequent words are pieces than if each character is one; in the second, if there is one, for a
    text whose words leave room, all of it.
    """
    lines = _without(tags, lines)
    counts = collections.Counter(itertools.chain.from_iterable(lines))
    for character in COUNTED_OTHERWISE:
        del counts[character]
    characters = [character for character, _ in counts.most_common()]
    for most in [room // 2, room] if len(characters) >= room else [len(characters) + 1]:
        rare = characters[max(most - 1, 0) :]
        if rare:
            told = [f"{len(some):,}" for some in (rare, characters)]
            logger.info(
                "no room for all characters as pieces: the %s rarest of %s are left to bytes", *told
            )
        table = dict.fromkeys(map(ord, [*rare, UNUSABLE]), BOUNDARY)
        yield [line.translate(table) for line in lines]


def _without(tags, lines):
    """Lines with `BOUNDARY` in the place of tags."""
    if not tags:
        return lines
    pattern = re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))))
    return [pattern.sub(BOUNDARY, line) for line in lines]


def fingerprint_of(model: bytes) -> str:
    """16 hexadecimal digits of the SHA-256 of a SentencePiece model."""
    return hashlib.sha256(model).hexdigest()[:16]


class Vocabulary:
    """A learned SentencePiece model, from its bytes, of `size` V pieces; `fingerprint` is equal for
    equal vocabularies, `processor` cuts text and joins it without TensorFlow.
    """

    kind = "joint"
    # The `ProtectedSpans` whose marks it has.
    protected = None
    shares_ids = True

    def __init__(self, model: bytes):
        self.model = model
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.size = self.processor.vocab_size()
        self.fingerprint = fingerprint_of(model)

    @property
    def source(self) -> "Vocabulary":
        """Of the source language, or of the target's: itself, where both share it."""
        return self

    target = source

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Read what `save` wrote."""
        model = pathlib.Path(path).read_bytes()
        # SentencePiece accepts an empty file, as a model without pieces.
        with contextlib.suppress(RuntimeError):
            if model:
                return cls(model)
        raise ValueError(
            f"{path} is not a SentencePiece model, or is damaged. Every export of its run has a "
            f"copy: assets.extra/{pathlib.Path(path).name}."
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the model, whole or not at all."""
        write_whole(path, lambda temporary: temporary.write_bytes(self.model))

    @functools.cached_property
    def pieces(self) -> list[str]:
        """V strings by id; a space is "\u2581"."""
        return [self.processor.id_to_piece(number) for number in range(self.size)]

    @functools.cached_property
    def spelled(self) -> list[str | bytes]:
        """What each piece writes: a text, or its byte where it is one; "" if it is special."""
        made = self.processor
        special = [one for one in range(self.size) if made.is_control(one) or made.is_unknown(one)]
        found: list[str | bytes] = [piece.replace(SPACE, " ") for piece in self.pieces]
        for number in filter(made.is_byte, range(self.size)):
            found[number] = bytes([int(self.pieces[number][3:5], 16)])
        return ["" if number in special else one for number, one in enumerate(found)]

    @functools.cached_property
    def merges(self) -> dict[str, int] | None:
        """The pieces of a byte-pair encoding that merges make, and their characters, with their
        ids: the smaller the id, the sooner the merge. None for another kind of vocabulary.
        """
        scores = [self.processor.get_score(number) for number in range(self.size)]
        # Special pieces, bytes and tags have the score 0, as the first merge has.
        first = max((number for number, score in enumerate(scores) if score == 0), default=0)
        if scores[first:] != [-float(rank) for rank in range(self.size - first)]:
            return None
        return {self.pieces[number]: number for number in range(first, self.size)}

    @functools.cached_property
    def log_probabilities(self) -> dict[str, float] | None:
        """The pieces of text of a unigram language model, with log P of each; None for others."""
        if self.merges is not None:
            return None
        scores = {
            piece: self.processor.get_score(number) for number, piece in enumerate(self.pieces)
        }
        # Special pieces, bytes and tags have the score 0.
        found = {piece: score for piece, score in scores.items() if score < 0}
        spelled = all(character in found for piece in found for character in piece)
        return found if found and spelled else None

    @functools.cached_property
    def marks(self) -> Marks:
        """The marks of a vocabulary that was learned with the tag `MASK`."""
        if MASK not in self.pieces:
            raise ValueError(
                f"a vocabulary must have the piece {MASK} to hide others. Received: one of "
                f"{self.size} pieces without it. Learn it by --task=masking."
            )
        mask = self.pieces.index(MASK)
        ordinary = np.setdiff1d(np.arange(self.size), (PAD, UNK, BOS, EOS, mask))
        return Marks(BOS, EOS, mask, MASK, ordinary, self.pieces.index(SPACE))

    @functools.cached_property
    def tokenizer(self):
        """The model as an operation of TensorFlow, which a module that is saved must track."""
        return operation(self.model, f"sentencepiece_{self.fingerprint}")

    def tokenize(self, text):
        """Strings (B,) to a ragged tensor of ids (B, None), each row closed by EOS."""
        return self.tokenizer.tokenize(text)

    def detokenize(self, ids):
        """A ragged tensor of ids (B, None) to strings (B,), without the special ids."""
        return self.tokenizer.detokenize(ids)
