"""The protocol buffer of a SentencePiece model: the fields that we change, and our own."""

import functools
from collections.abc import Iterable

# Field numbers of TrainerSpec.
IDS = {"unk_id": 40, "bos_id": 41, "eos_id": 42, "pad_id": 43}
NAMES = {"unk_surface": 44, "unk_piece": 45, "bos_piece": 46, "eos_piece": 47, "pad_piece": 48}
KINDS = {"model_type": 3, "byte_fallback": 35}
# The type of a user-defined piece.
USER_DEFINED = 4
# The score of a learned word piece: merges, probabilities and tags have none above 0.
LEARNED = 1.0
# Field numbers of NormalizerSpec.
SPACES = {"add_dummy_prefix": 3, "remove_extra_whitespaces": 4, "escape_whitespaces": 5}


@functools.cache
def message():
    """Return the class of a ModelProto, which preserves fields that are not named here. We cannot
    use SentencePiece's own, which needs a newer protobuf than TensorFlow takes. Two fields are
    ours: `rules`, replacements in a text before it is cut, and `byte_level`, to cut its bytes.
    """
    # Translating a line does not need protobuf, and should not wait for its import.
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="pieces.proto", package="pieces")
    field = descriptor_pb2.FieldDescriptorProto
    messages = {
        name: file.message_type.add(name=name)
        for name in ("Piece", "Trainer", "Normalizer", "Rule", "Model")
    }

    def add(name, kind, numbers, of=None, label=field.LABEL_OPTIONAL):
        for key, number in numbers.items():
            messages[name].field.add(name=key, number=number, type=kind, label=label, type_name=of)

    add("Piece", field.TYPE_STRING, {"piece": 1})
    add("Piece", field.TYPE_FLOAT, {"score": 2})
    add("Piece", field.TYPE_INT32, {"type": 3})
    add("Trainer", field.TYPE_INT32, {**IDS, **KINDS})
    add("Trainer", field.TYPE_STRING, NAMES)
    add("Normalizer", field.TYPE_BOOL, SPACES)
    add("Rule", field.TYPE_STRING, {"pattern": 1, "rewrite": 2})
    inner = field.TYPE_MESSAGE
    add("Model", inner, {"pieces": 1}, ".pieces.Piece", field.LABEL_REPEATED)
    add("Model", inner, {"trainer_spec": 2}, ".pieces.Trainer")
    add("Model", inner, {"normalizer_spec": 3}, ".pieces.Normalizer")
    # SentencePiece leaves field numbers from 200 on to extensions.
    add("Model", inner, {"rules": 200}, ".pieces.Rule", field.LABEL_REPEATED)
    add("Model", field.TYPE_BOOL, {"byte_level": 201})
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pieces.Model"))


def rules_of(model: bytes) -> list[tuple[str, str]]:
    """Return the replacements in a text before a model cuts it: RE2 patterns and their rewrites."""
    return [(rule.pattern, rule.rewrite) for rule in message().FromString(model).rules]


def is_byte_level(model: bytes) -> bool:
    """Whether a model cuts the bytes of words, written as letters."""
    return message().FromString(model).byte_level


def whole_pieces(model: bytes) -> list[str]:
    """Return the pieces that are never cut, such as tags and marks, but not learned word pieces."""
    entries = message().FromString(model).pieces
    whole = (entry for entry in entries if entry.type == USER_DEFINED and entry.score != LEARNED)
    return [entry.piece for entry in whole]


def with_symbols(model: bytes, count: int, symbols: Iterable[str]) -> bytes:
    """Return a model with its first `count` pieces, and symbols in place of the others."""
    proto = message().FromString(model)
    del proto.pieces[count:]
    for symbol in symbols:
        proto.pieces.add(piece=symbol, score=LEARNED, type=USER_DEFINED)
    return proto.SerializeToString()
