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

# Model types of a TrainerSpec, and types of pieces.
BPE_MODEL = 2
WORD_MODEL = 3
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = range(1, 6)
# Labels of the target language, which begin a text, and T5's sentinels.
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
    """Return a SentencePiece model that cuts text into the same pieces, with the ids of a list.

    Args:
        model: bytes of a model with any ids.
        pieces: strings by id, after PAD, UNK, BOS and EOS. The model need not know them: text is
            never cut into unknown ones of several characters, but they can be written. A label such
            as `>>deu<<` or `<extra_id_0>` is one piece, at a text's beginning or after a space.
        rules: see `rules_of`.
        labels: pieces of the list that name a language: neither cut from text nor written.
        unknown: how UNK is written; by default as SentencePiece writes it.

    Returns:
        The model; and its pieces of text that the list lacks. Text is cut without them.
    """
    proto = message().FromString(model)
    entries = {entry.piece: entry for entry in proto.pieces}
    del proto.pieces[:]
    for piece, kind in (SPECIAL[number] for number in range(len(SPECIAL))):
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    normal = (entry.score for entry in entries.values() if entry.type == NORMAL)
    least = min(normal, default=0.0)
    for piece in pieces:
        entry = entries.get(piece)
        if piece in labels:
            proto.pieces.add(piece=piece, score=0.0, type=CONTROL)
        elif entry is not None and entry.type not in (UNKNOWN, CONTROL):
            proto.pieces.add().CopyFrom(entry)
        elif LABEL.fullmatch(piece):
            # SentencePiece puts a space before the text, and the label is one piece without it.
            proto.pieces.add(piece=f"{SPACE}{piece}", score=0.0, type=USER_DEFINED)
        elif len(piece) == 1:
            # The other program looks up characters that its model leaves unknown.
            proto.pieces.add(piece=piece, score=least, type=NORMAL)
        else:
            proto.pieces.add(piece=piece, score=0.0, type=UNUSED)
    for name, number in zip(IDS, (UNK, BOS, EOS, PAD), strict=True):
        setattr(proto.trainer_spec, name, number)
        setattr(proto.trainer_spec, name.replace("_id", "_piece"), SPECIAL[number][0])
    proto.trainer_spec.unk_surface = unknown
    for pattern, rewrite in rules:
        proto.rules.add(pattern=pattern, rewrite=rewrite)
    names = set(pieces)
    lost = [
        name
        for name, entry in entries.items()
        if name not in names and entry.type not in (UNKNOWN, CONTROL)
    ]
    return proto.SerializeToString(), lost


def language_labels(vocabulary: Vocabulary) -> dict[str, int]:
    """Return {language: id} of the pieces that name a language: "de" for "__de__", or "deu_Latn".
    They are the control pieces besides the special ones; most vocabularies have none.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    numbers = [number for number in range(EOS + 1, vocabulary.size) if processor.is_control(number)]
    return {vocabulary.pieces[number].strip("_"): number for number in numbers}


def require_trainable(vocabulary: Any, origin: str | pathlib.Path, remedy: str) -> None:
    """Raise if no translator can be trained with a vocabulary. `origin` says where it is from."""
    if "word_pieces" in (vocabulary.source.kind, vocabulary.target.kind):
        reason = "word pieces, from which text cannot be put together again"
    elif language_labels(vocabulary.target):
        reason = "labels of languages, and training gives texts no labels"
    else:
        return
    raise ValueError(f"the vocabulary of {origin} has {reason}. {remedy}")


def word_model(pieces: Sequence[str]) -> bytes:
    """Return a SentencePiece model that cuts text at spaces alone, into the words of a list, whose
    ids follow PAD, UNK, BOS and EOS.
    """
    proto = _without_pieces(WORD_MODEL)
    for piece in pieces:
        proto.pieces.add(piece=f"{SPACE}{piece}", score=0.0, type=NORMAL)
    return proto.SerializeToString()


def byte_pair_model(scores: Mapping[str, float | None]) -> bytes:
    """Return a SentencePiece model of byte-level pieces, in letters, whose ids follow PAD, UNK, BOS
    and EOS. The higher its score, the sooner a piece is merged; None: text is never cut into it.
    """
    proto = _without_pieces(BPE_MODEL)
    for piece, score in scores.items():
        kind = UNUSED if score is None else NORMAL
        proto.pieces.add(piece=piece, score=score or 0.0, type=kind)
    for name in SPACES:
        setattr(proto.normalizer_spec, name, False)
    proto.byte_level = True
    return proto.SerializeToString()


def _without_pieces(model_type):
    """Return a model that leaves text as it is, with the special pieces alone."""
    proto = message().FromString(vocabulary.learn(["a"], 4 + vocabulary.BYTES + 2).model)
    del proto.pieces[len(SPECIAL) :]
    proto.trainer_spec.model_type = model_type
    proto.trainer_spec.byte_fallback = 0
    return proto


def read_model(path: pathlib.Path, remedy: str) -> bytes:
    model = regular_file(path).read_bytes()
    try:
        entries = message().FromString(model).pieces
        # A piece that is not valid UTF-8 is read as bytes.
        if model and all(isinstance(entry.piece, str) for entry in entries):
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
    **options: Any,
) -> Vocabulary:
    """Read a model with `read_model` and put it `in_order`; `unused` gets the lost pieces."""
    model, lost = in_order(read_model(path, remedy), pieces, **options)
    if lost:
        unused[path.name] = lost
    return Vocabulary(model)
