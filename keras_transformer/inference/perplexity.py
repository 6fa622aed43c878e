"""The exponential of a cross-entropy, as number and in words (Vaswani et al. 2017, 6.2)."""

import math


def perplexity(nats: float) -> float:
    """exp(nats); infinite where that is too large for a float."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def rounded_perplexity(nats: float) -> float | None:
    """A perplexity for JSON, to three decimals; None where it is not finite."""
    number = perplexity(nats)
    return round(number, 3) if math.isfinite(number) else None


def in_words(number: float | None) -> str:
    """What `rounded_perplexity` gave, to be printed."""
    return "beyond all numbers" if number is None else str(number)
