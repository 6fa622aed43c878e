"""Toy corpus: 3 to 12 letters between spaces, and the same letters in reverse order.

It is generated, so it needs no network. A small model with working attention and positions learns
it in seconds.
"""

import random

from pipelines.corpora.options import Seeded, Target
from pipelines.corpora.parallel_text import Corpus, ParallelText

WORDS = "abcdefghijklmnopqrst"
SHORTEST = 3
LONGEST = 12
# Pairs of each split.
SIZES = {"train": 4000, "valid": 200, "test": 200}


class Reverse(Target, Seeded, name="reverse"):
    """Reversed letters. Each source occurs once, and equal seeds give equal corpora."""

    def load(self):
        draw = random.Random(self.seed)
        sequences: dict[tuple[str, ...], None] = {}
        while len(sequences) < sum(SIZES.values()):
            sequences[tuple(draw.choices(WORDS, k=draw.randint(SHORTEST, LONGEST)))] = None
        pairs = ((" ".join(words), " ".join(reversed(words))) for words in sequences)
        splits = {
            split: ParallelText.from_pairs([next(pairs) for _ in range(size)])
            for split, size in SIZES.items()
        }
        return Corpus("reverse", self.source_language, self.target_language, **splits, dropped={})
