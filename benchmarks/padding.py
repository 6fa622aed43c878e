"""Padding of a corpus as large as WMT 2014's (Vaswani et al. 2017, section 5.1: 4.5 million pairs,
"batched together by approximate sequence length"): `python -m benchmarks.padding`.

The lengths are drawn: log-normal, like those of WMT 2014 English-German in 37,000 pieces. Printed
are the shapes of the batches, and the share of their positions that holds no token. It takes less
than a minute.
"""

import numpy as np
from absl import app, flags

from pipelines.batches.bucketing import bucket

PAIRS = flags.DEFINE_integer("pairs", 4_500_000, "Pairs of sentences.", lower_bound=1)
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 25_000, "Tokens of an update on either side.")
LONGEST = flags.DEFINE_integer("longest", 256, "Longer pairs are left out.", lower_bound=2)


def lengths_like_wmt(pairs: int, longest: int) -> np.ndarray:
    """Tokens of both sides with EOS, integers (at most `pairs`, 2), drawn by a fixed seed."""
    random = np.random.default_rng(0)
    sources = random.lognormal(3.2, 0.62, pairs)
    targets = sources * random.lognormal(0.02, 0.2, pairs)
    lengths = np.stack([sources, targets], axis=-1).round().astype(int).clip(1) + 1
    return lengths[(lengths <= longest).all(axis=1)]


def main(_):
    lengths = lengths_like_wmt(PAIRS.value, LONGEST.value)
    print(f"{len(lengths):,} pairs: {bucket(lengths, BATCH_TOKENS.value).describe()}")


if __name__ == "__main__":
    app.run(main)
