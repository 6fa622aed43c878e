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
from pipelines.vocabularies.protected_spans import MARK
from pipelines.vocabularies.tokenizers import operation
from pipelines.whole_files import write_whole

BYTES = 256
# Stands for a hidden piece: a tag of vocabularies for masked language models.
MASK = "<mask>"
# How SentencePiece writes a space.
SPACE = "\u2581"
# Four bytes for each of the 100,000 characters that corpora allow.
LONGEST_IN_BYTES = 400_000
RESERVED = {"<pad>", "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(BYTES))}

# U+2581 becomes a space: SentencePiece writes spaces so, and cannot tell the two apart. Without any
# rule, its TensorFlow operation writes a line to stderr whenever it loads a model.
NORMALIZATION = "2581\t20\n"
# A model says which file its rules came from, here a temporary one. Protocol buffers are merged by
# joining them: this is a ModelProto whose NormalizerSpec (field 3) names no file (field 6).
NO_FILE = b"\x1a\x02\x32\x00"
# In SentencePiece no piece crosses the first, and lines with the second are skipped.
BOUNDARY = "\0"
UNUSABLE = "\u2585"
# These are no characters of pieces, or have their piece anyway.
COUNTED_OTHERWISE = (BOUNDARY, UNUSABLE, " ", SPACE)

logger = logging.getLogger(__name__)


def learn(
    lines: Iterable[str], size: int, tags: Iterable[str] = (), model_type: str = "bpe"
) -> "Vocabulary":
    """Learn a vocabulary from the training text. Log if it is smaller than requested, or if there
    are too many characters, so that some are left to bytes.

    Args:
        lines: of all languages that share it.
        size: most pieces, including the 4 special ones, 256 bytes and the tags. A text with fewer
            pieces gives all that it has; one with more characters leaves the rarest to bytes.
        tags: strings such as "<2de>" that tell the model what to do. Each is one piece wherever it
            stands, and no other piece crosses it.
        model_type: "bpe", byte-pair encoding (Sennrich et al. 2016), which merges the most frequent
            pairs; "unigram" (Kudo 2018), which keeps the pieces that make the text most likely;
            or "word_piece", as in the paper for English-French: see `longest_match`.
    """
    tags = list(tags)
    if clashing := sorted({tag for tag in tags if tag in RESERVED or tags.count(tag) > 1}):
        raise ValueError(
            "`tags` must differ from each other and from the special pieces and bytes. "
            f"Received: {', '.join(clashing)}. Choose another name."
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
    """Return the bytes of a SentencePiece model."""
    if model_type == "word_piece":
        room = size - 4 - BYTES - len(tags)
        pieces = longest_match.learned(_without(tags, lines), room, tags, **limits)
        # A model of two characters, which the pieces replace.
        base = _train(["a"], size - room + 2, tags, "char", hard_vocab_limit=False)
        return with_symbols(base, size - room, pieces)
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
            # SentencePiece skips longer lines, by default those over 4,192 bytes.
            max_sentence_length=LONGEST_IN_BYTES,
            minloglevel=2,
            **limits,
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue() + NO_FILE)
    return processor.serialized_model_proto()


def _without_rarest(lines: Sequence[str], room: int, tags: Sequence[str]) -> Iterator[list[str]]:
    """Yield lines to learn pieces from, in which `BOUNDARY` stands for tags, and for the rarest
    characters if there is no room for all.

    In the first lines the other characters take half of the room, because a text has fewer tokens
    if frequent words are pieces than if each character is one. In the second, if there are any,
    they take all of it, for a text whose words do not fill the other half.
    """
    lines = _without(tags, lines)
    counts = collections.Counter(itertools.chain.from_iterable(lines))
    for character in COUNTED_OTHERWISE:
        del counts[character]
    characters = [character for character, _ in counts.most_common()]
    for most in [room // 2, room] if len(characters) >= room else [len(characters) + 1]:
        rare = characters[max(most - 1, 0) :]
        if rare:
            logger.info(
                "no room for all characters as pieces: the %s rarest of %s are left to bytes",
                *(f"{len(group):,}" for group in (rare, characters)),
            )
        table = dict.fromkeys(map(ord, [*rare, UNUSABLE]), BOUNDARY)
        yield [line.translate(table) for line in lines]


def _without(tags, lines):
    """Return lines with `BOUNDARY` in place of tags."""
    if not tags:
        return lines
    pattern = re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))))
    return [pattern.sub(BOUNDARY, line) for line in lines]


def fingerprint_of(model: bytes) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of a SentencePiece model."""
    return hashlib.sha256(model).hexdigest()[:16]


class Vocabulary:
    """A learned SentencePiece model, from its bytes. `size` is V, its number of pieces; equal
    vocabularies have one `fingerprint`; `processor` cuts and joins text without TensorFlow.
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
        """The vocabulary of the source, and of the target: itself, because they share it."""
        return self

    target = source

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Load what `save` wrote, or another SentencePiece model with our special ids."""
        model = pathlib.Path(path).read_bytes()
        loaded = None
        # SentencePiece accepts an empty file, as a model without pieces.
        with contextlib.suppress(RuntimeError):
            loaded = cls(model) if model else None
        if loaded is None:
            raise ValueError(
                f"{path} is not a SentencePiece model, or is damaged. Every export of its run has "
                f"a copy: assets.extra/{pathlib.Path(path).name}."
            )
        own = loaded.processor
        if (own.pad_id(), own.unk_id(), own.bos_id(), own.eos_id()) != (PAD, UNK, BOS, EOS):
            raise ValueError(
                f"{path} must have the ids <pad> {PAD}, <unk> {UNK}, <s> {BOS}, </s> {EOS}. "
                f"Received: {own.pad_id()}, {own.unk_id()}, {own.bos_id()}, {own.eos_id()}. "
                "Train it with SentencePiece's --pad_id, --unk_id, --bos_id and --eos_id."
            )
        return loaded

    def save(self, path: str | os.PathLike) -> None:
        """Write the model, whole or not at all."""
        write_whole(path, lambda temporary: temporary.write_bytes(self.model))

    @functools.cached_property
    def pieces(self) -> list[str]:
        """V strings by id; a space is "\u2581"."""
        return [self.processor.id_to_piece(number) for number in range(self.size)]

    @functools.cached_property
    def spelled(self) -> list[str | bytes]:
        """What each piece writes: text, a mark without its number, a byte, or "" for controls."""
        pieces = [re.sub(MARK, "⟦⟧", piece) for piece in self.pieces]
        texts: list[str | bytes] = [piece.replace(SPACE, " ") for piece in pieces]
        for number, piece in enumerate(self.pieces):
            if self.processor.is_control(number) or self.processor.is_unknown(number):
                # Nothing, or the sign for an unknown piece.
                texts[number] = self.processor.decode([number])
            elif self.processor.is_byte(number):
                texts[number] = bytes([int(piece[3:5], 16)])
        return texts

    @functools.cached_property
    def merges(self) -> dict[str, int] | None:
        """The merged pieces of a byte-pair encoding, and their characters, with ids: the smaller
        the id, the sooner the merge. None for another kind of vocabulary.
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
        text = {piece: score for piece, score in scores.items() if score < 0}
        has_characters = all(character in text for piece in text for character in piece)
        return text if text and has_characters else None

    @functools.cached_property
    def marks(self) -> Marks:
        """The marks of a text, if the vocabulary was learned with the tag `MASK`."""
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
        """The model as a TensorFlow operation. A module that is saved must track it."""
        return operation(self.model, f"sentencepiece_{self.fingerprint}")

    def tokenize(self, text):
        """Turn strings (B,) into a ragged tensor of ids (B, None), each row closed by EOS."""
        return self.tokenizer.tokenize(text)

    def detokenize(self, ids):
        """Turn a ragged tensor of ids (B, None) into strings (B,), without the special ids."""
        return self.tokenizer.detokenize(ids)
