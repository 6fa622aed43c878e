"""The protocol buffer of a SentencePiece model, as far as we change it, and our rules in it."""

import functools
from collections.abc import Iterable

# Numbers of a TrainerSpec's fields.
IDS = {"unk_id": 40, "bos_id": 41, "eos_id": 42, "pad_id": 43}
NAMES = {"unk_surface": 44, "unk_piece": 45, "bos_piece": 46, "eos_piece": 47, "pad_piece": 48}
KINDS = {"model_type": 3, "byte_fallback": 35}
# Of a piece that a user named.
USER_DEFINED = 4
# The score of a word piece: no merge, probability or tag has one above 0.
LEARNED = 1.0
# Of a NormalizerSpec.
SPACES = {"add_dummy_prefix": 3, "remove_extra_whitespaces": 4, "escape_whitespaces": 5}


@functools.cache
def message():
    """The class of a ModelProto, of which other fields are kept as they are. SentencePiece's own
    needs a newer protobuf than TensorFlow takes. Two fields are ours: `rules`, what is replaced in
    a text before it is cut, and `byte_level`, whether its bytes are cut.
    """
    # A translation of a line has no use for it, and does not wait for its import.
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
    # SentencePiece leaves numbers from 200 to others.
    add("Model", inner, {"rules": 200}, ".pieces.Rule", field.LABEL_REPEATED)
    add("Model", field.TYPE_BOOL, {"byte_level": 201})
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pieces.Model"))


def rules_of(model: bytes) -> list[tuple[str, str]]:
    """What is replaced in a text before a model cuts it: regular expressions of RE2, and what
    stands for what they find, in their order.
    """
    return [(one.pattern, one.rewrite) for one in message().FromString(model).rules]


def is_byte_level(model: bytes) -> bool:
    """Whether a model cuts the bytes of words, written as letters."""
    return message().FromString(model).byte_level


def whole_pieces(model: bytes) -> list[str]:
    """The pieces that a text is never cut in, such as tags and marks; not learned word pieces."""
    pieces = message().FromString(model).pieces
    return [one.piece for one in pieces if one.type == USER_DEFINED and one.score != LEARNED]


def with_symbols(model: bytes, kept: int, symbols: Iterable[str]) -> bytes:
    """A model with its first pieces and, in the place of the others, symbols that a user named."""
    made = message().FromString(model)
    del made.pieces[kept:]
    for one in symbols:
        made.pieces.add(piece=one, score=LEARNED, type=USER_DEFINED)
    return made.SerializeToString()
