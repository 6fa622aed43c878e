"""What a request may take, worked out from shapes and options before anything is computed.

Texts are counted in tokens by the SavedModel's own SentencePiece models; where it has none of text,
a text of n bytes has at most n. Of each our models, which say their sizes, read no more than 1,024.
"""

import dataclasses
import json
import math
import sys
from fractions import Fraction

import numpy as np
import sentencepiece

from keras_transformer.decoding.lengths import LONGEST, MAX_SOURCE_LENGTH, in_tokens, parse_length
from keras_transformer.decoding.options import MOST_HYPOTHESES
from keras_transformer.saved_models.signature import Signature
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import PICTURE, Rows

FLOAT = 4
# Of a float32 in JSON, with its comma.
WRITTEN = 14
# A text's begin and end.
ENDS = 2
# How long a result may be where nothing says it.
UNKNOWN = "+64"
SEARCHES = ("serving_default", "translate", "nbest", "sample", "blockwise")
READINGS = ("score", "next_pieces")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a model, those of the paper's base model for a SavedModel that says none; its
    beam_size and max_length as exported, 0 if it does not search; how many tokens of a text it
    reads; and its tokenizers.
    """

    num_layers: int = 6
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    vocabulary_size: int = 37000
    beam_size: int = 4
    max_length: tuple[Fraction, int] = parse_length("max_length", UNKNOWN)
    most_tokens: int = sys.maxsize
    tokenizers: tuple[sentencepiece.SentencePieceProcessor, ...] = ()

    @classmethod
    def of(cls, model) -> "Sizes":
        """Read the `model.json` of a served model, if it has one, and its tokenizers."""
        tokenizers = tuple(
            sentencepiece.SentencePieceProcessor(model_proto=one)
            for one in model.sentencepiece_models
        )
        try:
            card = json.loads((model.folder / "model.json").read_text(encoding="utf-8"))
            hyperparameters = card["hyperparameters"]
            decoding = card.get("decoding")
            names = {field.name for field in dataclasses.fields(cls)}
            said = hyperparameters.items()
            sizes = {name: n for name, n in said if name in names and isinstance(n, int)}
            widths = [] if decoding is None else ["beam_size", "samples"]
            beam = max((decoding.get(name) or 1 for name in widths), default=0)
            length = parse_length("max_length", (decoding or {}).get("max_length", UNKNOWN))
            sizes |= {"beam_size": beam, "max_length": length, "tokenizers": tokenizers}
            return cls(**sizes, most_tokens=MAX_SOURCE_LENGTH)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls(tokenizers=tokenizers)

    def tokens(self, text: bytes) -> int:
        """The most tokens that a text may have. What masks part is cut by itself."""
        counts = [len(one.encode(text)) for one in self.tokenizers] or [len(text)]
        return ENDS + min(max(counts) + 2 * text.count(b"<mask>"), self.most_tokens)


def within_limits(
    name: str, signature: Signature, task: Rows, sizes: Sizes, limits: ServeOptions
) -> Rows:
    """A request with the memory that its rows may take; refused if that, or its answer, may be more
    than is allowed.
    """
    lengths = _lengths(signature, task, sizes)
    answer = task.count * WRITTEN * sum(_numbers(signature, lengths))
    if answer > limits.max_response_bytes:
        raise RequestError(
            f"The answer of `{name}` to {task.count} rows of {max(lengths):,} tokens may have "
            f"{answer:,} bytes; --max_response_bytes={limits.max_response_bytes:,}. Send fewer "
            "rows, or shorter texts."
        )
    memory = row_memory(name, signature, task, sizes, lengths)
    at_once = 1 if signature.is_mergeable else task.count
    if memory * at_once > limits.most_memory:
        raise RequestError(
            f"`{name}` may take {memory * at_once:,} bytes of memory for {at_once} rows of "
            f"{max(lengths):,} tokens; half of --max_memory_bytes is {limits.most_memory:,}. Send "
            "fewer rows, shorter texts, or a smaller beam_size or max_length."
        )
    return dataclasses.replace(task, row_memory=memory)


def row_memory(
    name: str, signature: Signature, task: Rows, sizes: Sizes, lengths: list[int]
) -> int:
    """Bytes that one row with texts of so many tokens may take while a signature works on it."""
    longest = max(lengths)
    read = FLOAT * longest * (8 * sizes.d_model + 2 * sizes.d_ff)
    read += 3 * FLOAT * sizes.num_heads * longest**2
    if name in SEARCHES and sizes.beam_size:
        widest = max(MOST_HYPOTHESES, sizes.beam_size)
        beam = min(_option(task, "beam_size", sizes.beam_size), widest)
        asked = min(_option(task, "max_length", 0), LONGEST)
        limit = longest + asked if asked else in_tokens(sizes.max_length, longest)
        positions = max(longest, limit)
        remembered = 2 * FLOAT * sizes.num_layers * sizes.d_model
        # Each step makes new ones of the remembered keys and values.
        return read + beam * (2 * remembered * positions + 6 * FLOAT * sizes.vocabulary_size)
    if name in READINGS:
        return read + 3 * FLOAT * longest * sizes.vocabulary_size
    return read + 3 * FLOAT * sum(_numbers(signature, lengths))


def _numbers(signature, lengths):
    """How many a row has of each output that holds numbers for pairs of tokens."""
    for spec in signature.outputs.values():
        if spec.dtype.kind in "fV" and spec.shape:
            known = math.prod(size for size in spec.shape[1:] if size)
            free = spec.shape[1:].count(None)
            # Between two texts, or between one text and itself.
            between = (lengths * 2)[:free] if len(lengths) < free else lengths[:free]
            yield known * math.prod(between)


def _lengths(signature, task, sizes):
    """The most tokens of each text; pictures have a fixed number."""
    texts = [
        max(map(sizes.tokens, set(array.reshape(-1))), default=ENDS)
        for name, array in task.inputs.items()
        if array.dtype == object and name != PICTURE and name in signature.required
    ]
    return texts or [LONGEST // 4]


def _option(task, name, default):
    array = {**task.inputs, **task.options}.get(name)
    return default if array is None else max(int(np.max(array, initial=0)), 0) or default
