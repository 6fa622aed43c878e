"""The protocol buffer of a SentencePiece model, as far as we change it, and our rules in it."""

import functools
from collections.abc import Iterable

# Numbers of a TrainerSpec's fields.
IDS = {"unk_id": 40, "bos_id": 41, "eos_id": 42, "pad_id": 43}
NAMES = {"unk_piece": 45, "bos_piece": 46, "eos_piece": 47, "pad_piece": 48}
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

    def add(name, **fields):
        one = file.message_type.add(name=name)
        for key, (number, kind, label, of) in fields.items():
            one.field.add(name=key, number=number, type=kind, label=label, type_name=of)

    optional = field.LABEL_OPTIONAL
    add(
        "Piece",
        piece=(1, field.TYPE_STRING, optional, None),
        score=(2, field.TYPE_FLOAT, optional, None),
        type=(3, field.TYPE_INT32, optional, None),
    )
    add(
        "Trainer",
        **{
            name: (number, field.TYPE_INT32, optional, None)
            for name, number in {**IDS, **KINDS}.items()
        },
        **{name: (number, field.TYPE_STRING, optional, None) for name, number in NAMES.items()},
    )
    add(
        "Normalizer",
        **{name: (number, field.TYPE_BOOL, optional, None) for name, number in SPACES.items()},
    )
    add(
        "Rule",
        pattern=(1, field.TYPE_STRING, optional, None),
        rewrite=(2, field.TYPE_STRING, optional, None),
    )
    add(
        "Model",
        pieces=(1, field.TYPE_MESSAGE, field.LABEL_REPEATED, ".pieces.Piece"),
        trainer_spec=(2, field.TYPE_MESSAGE, optional, ".pieces.Trainer"),
        normalizer_spec=(3, field.TYPE_MESSAGE, optional, ".pieces.Normalizer"),
        # SentencePiece leaves numbers from 200 to others.
        rules=(200, field.TYPE_MESSAGE, field.LABEL_REPEATED, ".pieces.Rule"),
        byte_level=(201, field.TYPE_BOOL, optional, None),
    )
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
