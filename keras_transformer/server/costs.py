"""Limits of a request's memory and answer, estimated from shapes and options before it is computed.

The SavedModel's own SentencePiece models count a text's tokens; without them, n bytes count as n
tokens. Models with a `model.json`, which are ours, read no more than 1,024 tokens of a text.
"""

import dataclasses
import json
import math
import sys
from fractions import Fraction

import numpy as np
import sentencepiece

from keras_transformer.decoding.lengths import LONGEST, MAX_SOURCE_LENGTH, in_tokens, parse_length
from keras_transformer.decoding.options import BEAM_SIZE, MOST_HYPOTHESES
from keras_transformer.saved_models.signature import Signature
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import PICTURE, Rows

FLOAT = 4
# Bytes of a float32 in JSON, with its comma.
WRITTEN = 14
# Tokens that mark a text's begin and end.
ENDS = 2
# The `max_length` of a model that states none.
UNKNOWN = "+64"
SEARCHES = ("serving_default", "translate", "nbest", "sample", "blockwise")
READINGS = ("score", "next_pieces")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a model that determine its costs. Defaults are those of the paper's base model.

    `beam_size` and `max_length` are as exported; `beam_size` is 0 for a model without a search.
    `most_tokens` is how many tokens of a text it reads.
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
        """Read a served model's tokenizers and, if it has one, its `model.json`."""
        tokenizers = tuple(
            sentencepiece.SentencePieceProcessor(model_proto=serialized)
            for serialized in model.sentencepiece_models
        )
        try:
            card = json.loads((model.folder / "model.json").read_text(encoding="utf-8"))
            hyperparameters = card["hyperparameters"].items()
            decoding = card.get("decoding")
            names = {field.name for field in dataclasses.fields(cls)}
            sizes = {name: n for name, n in hyperparameters if name in names and isinstance(n, int)}
            beam = 0
            if decoding is not None:
                # The card leaves out a beam of the usual size.
                beam = decoding.get("samples") or decoding.get("beam_size") or BEAM_SIZE
            length = parse_length("max_length", (decoding or {}).get("max_length", UNKNOWN))
            sizes |= {"beam_size": beam, "max_length": length, "tokenizers": tokenizers}
            return cls(**sizes, most_tokens=MAX_SOURCE_LENGTH)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls(tokenizers=tokenizers)

    def tokens(self, text: bytes) -> int:
        """Return an upper bound of a text's tokens. Masks split it into parts encoded alone."""
        counts = [len(tokenizer.encode(text)) for tokenizer in self.tokenizers] or [len(text)]
        return ENDS + min(max(counts) + 2 * text.count(b"<mask>"), self.most_tokens)


def within_limits(
    name: str, signature: Signature, task: Rows, sizes: Sizes, limits: ServeOptions
) -> Rows:
    """Return the request with its `row_memory`. Refuse it if its memory or its answer may exceed
    the limits.
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
    """Return the bytes of memory that a signature may take for a row of texts of these lengths."""
    longest = max(lengths)
    read = FLOAT * longest * (8 * sizes.d_model + 2 * sizes.d_ff)
    read += 3 * FLOAT * sizes.num_heads * longest**2
    if name in SEARCHES and sizes.beam_size:
        widest = max(MOST_HYPOTHESES, sizes.beam_size)
        beam = min(_option(task, "beam_size", sizes.beam_size), widest)
        max_length = min(_option(task, "max_length", 0), LONGEST)
        limit = longest + max_length if max_length else in_tokens(sizes.max_length, longest)
        positions = max(longest, limit)
        cache = 2 * FLOAT * sizes.num_layers * sizes.d_model
        # Each step copies the cached keys and values.
        return read + beam * (2 * cache * positions + 6 * FLOAT * sizes.vocabulary_size)
    if name in READINGS:
        return read + 3 * FLOAT * longest * sizes.vocabulary_size
    return read + 3 * FLOAT * sum(_numbers(signature, lengths))


def _numbers(signature, lengths):
    """Yield how many numbers a row has of each output of floats, such as attention weights."""
    for spec in signature.outputs.values():
        if spec.dtype.kind in "fV" and spec.shape:
            fixed = math.prod(size for size in spec.shape[1:] if size)
            free = spec.shape[1:].count(None)
            # Free sizes are the lengths of two texts, or of one text twice.
            yield fixed * math.prod((lengths * 2 if len(lengths) < free else lengths)[:free])


def _lengths(signature, task, sizes):
    """Return an upper bound of the tokens of each text input; a constant if there is none. The
    pieces of a `prefix` count with each.
    """
    texts = [
        max(map(sizes.tokens, set(array.reshape(-1))), default=ENDS)
        for name, array in (task.inputs | task.options).items()
        if array.dtype == object and name != PICTURE and name in signature.required
    ]
    prefixes = (task.inputs | task.options).get("prefix", np.array([b""], object))
    pieces = max((len(prefix.split()) for prefix in set(prefixes.reshape(-1))), default=0)
    return [tokens + pieces for tokens in texts] or [LONGEST // 4]


def _option(task, name, default):
    array = {**task.inputs, **task.options}.get(name)
    return default if array is None else max(int(np.max(array, initial=0)), 0) or default
