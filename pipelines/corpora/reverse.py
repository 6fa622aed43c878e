"""Toy corpus: reverse a sequence of 3 to 12 letters.

It is generated, so it needs no network. A small model learns it in seconds if it has attention and
knows positions.
"""

import random

from pipelines.corpora.parallel_text import Corpus, ParallelText

WORDS = "abcdefghijklmnopqrst"
SHORTEST = 3
LONGEST = 12


def load(
    source_language: str,
    target_language: str,
    *,
    seed: int = 0,
    train: int = 4000,
    valid: int = 200,
    test: int = 200,
) -> Corpus:
    """Generate the corpus: 3 to 12 letters separated by spaces, and the same letters in reverse
    order.

    Args:
        source_language: label of the sources; any text.
        target_language: label of the targets; any text.
        seed: equal seeds give equal corpora.
        train: number of training pairs, at least 1.
        valid: number of validation pairs, at least 1.
        test: number of test pairs, at least 1.

    Returns:
        The `Corpus`; each source occurs once in all of it.

    Raises:
        ValueError: a size below 1.
    """
    for argument, size in (("train", train), ("valid", valid), ("test", test)):
        if size < 1:
            raise ValueError(
                f"`{argument}` must be at least 1 pair. Received: {argument}={size}. Pass a "
                "positive number."
            )
    generator = random.Random(seed)
    sequences: dict[tuple[str, ...], None] = {}
    while len(sequences) < train + valid + test:
        sequences[tuple(generator.choices(WORDS, k=generator.randint(SHORTEST, LONGEST)))] = None
    pairs = [(" ".join(words), " ".join(reversed(words))) for words in sequences]
    return Corpus(
        name="reverse",
        source_language=source_language,
        target_language=target_language,
        train=ParallelText.from_pairs(pairs[:train]),
        valid=ParallelText.from_pairs(pairs[train : train + valid]),
        test=ParallelText.from_pairs(pairs[train + valid :]),
        dropped={},
    )
