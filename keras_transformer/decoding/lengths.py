"""Lengths of translations that depend on the source's: "input length + 50" (section 6.1)."""

import functools
import re
from fractions import Fraction

# Graphs cut longer sources; programs refuse them before.
MAX_SOURCE_LENGTH = 1024
MOST_TOKENS = 2**31 - 1
# The largest limit of a translation, in tokens, that a request may set.
LONGEST = 2048
LENGTH = re.compile(r"(?:(?P<factor>\d+(?:\.\d+)?)x)?(?P<extra>\+?\d+)?")


def most_read(positions: int) -> int:
    """Return the number of tokens that a model with this many positions reads of a text."""
    return min(positions, MAX_SOURCE_LENGTH)


@functools.lru_cache
def parse_length(name: str, length: int | str) -> tuple[Fraction, int]:
    """Parse a length such as 80, "80", "+50", "1.5x" or "2x+10" as (factor of the source's length,
    tokens to add). `name` is that of the argument, for the error.
    """
    match = LENGTH.fullmatch(str(length))
    factor, extra = match.groups() if match else (None, None)
    # "2x10" lacks a sign between its two numbers.
    if not (factor or extra) or (factor and extra and not extra.startswith("+")):
        raise ValueError(
            f'`{name}` must be such as 80, "+50", "1.5x" or "2x+10". Received: {name}={length}.'
        )
    relative = Fraction(factor) if factor else Fraction(extra.startswith("+"))
    tokens = relative, int(extra or 0)
    if not any(tokens):
        raise ValueError(f"`{name}` must be at least one token. Received: {name}={length}.")
    if in_tokens(tokens, MAX_SOURCE_LENGTH) > MOST_TOKENS:
        raise ValueError(
            f"`{name}` must be at most {MOST_TOKENS:,} tokens for a source of "
            f"{MAX_SOURCE_LENGTH:,}. Received: {name}={length}."
        )
    return tokens


def in_tokens(length: tuple[Fraction, int], source: int) -> int:
    """Return the number of tokens of a parsed length for a source of `source` tokens."""
    factor, extra = length
    return extra - (-source * factor.numerator // factor.denominator)


def limits(length: tuple[Fraction, int], source_lengths):
    """Return a parsed length for sources of lengths (B,), integers: int32 (B,), at least 1."""
    import tensorflow as tf

    factor, extra = length
    # In integers, because 1.1 * 50 > 55 in float64.
    relative = -(-tf.cast(source_lengths, tf.int64) * factor.numerator // factor.denominator)
    return tf.maximum(tf.cast(relative, tf.int32) + extra, 1)
