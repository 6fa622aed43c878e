"""SentencePiece models whose pieces have the ids of another program's vocabulary."""

import pathlib
import re
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Any

import sentencepiece
from google.protobuf.message import DecodeError

from pipelines.json_files import regular_file
from pipelines.special_ids import BOS, EOS, PAD, UNK
from pipelines.vocabularies import vocabulary
from pipelines.vocabularies.model_proto import IDS, SPACES, message
from pipelines.vocabularies.vocabulary import SPACE, Vocabulary

# Of a TrainerSpec.
BPE_MODEL = 2
WORD_MODEL = 3
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = range(1, 6)
# What says at the beginning of a text which language it is translated into, and T5's sentinels.
LABEL = re.compile(r">>\w[\w-]*<<|<extra_id_\d+>")
SPECIAL = {PAD: ("<pad>", CONTROL), UNK: ("<unk>", UNKNOWN), BOS: ("<s>", CONTROL)}
SPECIAL |= {EOS: ("</s>", CONTROL)}


def in_order(
    model: bytes,
    pieces: Sequence[str],
    rules: Sequence[tuple[str, str]] = (),
    labels: Collection[str] = (),
    unknown: str = " \u2047 ",
) -> tuple[bytes, list[str]]:
    """A SentencePiece model that cuts text into the same pieces, with the ids of a list.

    Args:
        model: bytes of another, of any ids.
        pieces: strings by id, behind PAD, UNK, BOS and EOS, which the model need not know. Longer
            ones that it does not know are never cut, but written. A label such as `>>deu<<` or
            `<extra_id_0>` is one piece, at the beginning of a text or behind a space.
        rules: as of `rules_of`.
        labels: pieces of the list that say a language: neither cut from text nor written.
        unknown: what UNK is written as; by default as SentencePiece does.

    Returns:
        The model; and the pieces of text that it knew and the list has not. Text is cut without
        them.
    """
    made = message().FromString(model)
    known = {one.piece: one for one in made.pieces}
    del made.pieces[:]
    for piece, kind in (SPECIAL[number] for number in range(len(SPECIAL))):
        made.pieces.add(piece=piece, score=0.0, type=kind)
    least = min((one.score for one in known.values() if one.type == NORMAL), default=0.0)
    for piece in pieces:
        one = known.get(piece)
        if piece in labels:
            made.pieces.add(piece=piece, score=0.0, type=CONTROL)
        elif one is not None and one.type not in (UNKNOWN, CONTROL):
            made.pieces.add().CopyFrom(one)
        elif LABEL.fullmatch(piece):
            # SentencePiece puts a space before the text, and the label is one piece without it.
            made.pieces.add(piece=f"{SPACE}{piece}", score=0.0, type=USER_DEFINED)
        elif len(piece) == 1:
            # The other program looks up what its model leaves as an unknown character.
            made.pieces.add(piece=piece, score=least, type=NORMAL)
        else:
            made.pieces.add(piece=piece, score=0.0, type=UNUSED)
    for name, number in zip(IDS, (UNK, BOS, EOS, PAD), strict=True):
        setattr(made.trainer_spec, name, number)
        setattr(made.trainer_spec, name.replace("_id", "_piece"), SPECIAL[number][0])
    made.trainer_spec.unk_surface = unknown
    for pattern, rewrite in rules:
        made.rules.add(pattern=pattern, rewrite=rewrite)
    names = set(pieces)
    lost = [
        name
        for name, one in known.items()
        if name not in names and one.type not in (UNKNOWN, CONTROL)
    ]
    return made.SerializeToString(), lost


def language_labels(vocabulary: Vocabulary) -> dict[str, int]:
    """The ids of the pieces that say a language, such as "__de__" or "deu_Latn", by language, "de"
    or "deu_Latn": control pieces besides the special ones. {} in most vocabularies.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    found = [number for number in range(EOS + 1, vocabulary.size) if processor.is_control(number)]
    return {vocabulary.pieces[number].strip("_"): number for number in found}


def require_trainable(vocabulary: Any, origin: str | pathlib.Path, remedy: str) -> None:
    """Refuse the vocabulary of an origin that no translator is trained with."""
    if "word_pieces" in (vocabulary.source.kind, vocabulary.target.kind):
        reason = "word pieces, from which text cannot be put together again"
    elif language_labels(vocabulary.target):
        reason = "labels of languages, and training gives texts no labels"
    else:
        return
    raise ValueError(f"the vocabulary of {origin} has {reason}. {remedy}")


def of_words(pieces: Sequence[str]) -> bytes:
    """A SentencePiece model that cuts text at spaces alone, into the words of a list, which have
    the ids behind PAD, UNK, BOS and EOS.
    """
    made = _without_pieces(WORD_MODEL)
    for piece in pieces:
        made.pieces.add(piece=f"{SPACE}{piece}", score=0.0, type=NORMAL)
    return made.SerializeToString()


def of_byte_pairs(scores: Mapping[str, float | None]) -> bytes:
    """A SentencePiece model of byte-level pieces, in letters, which have the ids behind PAD, UNK,
    BOS and EOS. The higher its score the sooner a piece is merged; None: it is none of the text's.
    """
    made = _without_pieces(BPE_MODEL)
    for piece, score in scores.items():
        kind = UNUSED if score is None else NORMAL
        made.pieces.add(piece=piece, score=score or 0.0, type=kind)
    for name in SPACES:
        setattr(made.normalizer_spec, name, False)
    made.byte_level = True
    return made.SerializeToString()


def _without_pieces(model_type):
    """A model that leaves text as it is, with the special pieces alone."""
    made = message().FromString(vocabulary.learn(["a"], 4 + vocabulary.BYTES + 2).model)
    del made.pieces[len(SPECIAL) :]
    made.trainer_spec.model_type = model_type
    made.trainer_spec.byte_fallback = 0
    return made


def read_model(path: pathlib.Path, remedy: str) -> bytes:
    model = regular_file(path).read_bytes()
    try:
        # A piece that is no UTF-8 is read as bytes.
        if model and all(isinstance(one.piece, str) for one in message().FromString(model).pieces):
            sentencepiece.SentencePieceProcessor(model_proto=model)
            return model
    except (RuntimeError, DecodeError):
        pass
    raise ValueError(f"{path} is not a SentencePiece model, or is damaged. {remedy}")


def read_in_order(
    path: pathlib.Path,
    pieces: Sequence[str],
    remedy: str,
    unused: MutableMapping[str, list[str]],
    **how: Any,
) -> Vocabulary:
    """`in_order` of a file, as `read_model` reads it. `unused` gets what text is cut without."""
    model, lost = in_order(read_model(path, remedy), pieces, **how)
    if lost:
        unused[path.name] = lost
    return Vocabulary(model)
