"""The n best hypotheses as a tree: what they begin with alike is one branch (Vaswani et al. 2017,
section 6.1, for the search that finds them).
"""

import dataclasses
from collections.abc import Sequence

from keras_transformer.inference.hypothesis import Hypothesis


@dataclasses.dataclass(frozen=True)
class Branch:
    """Pieces that some hypotheses share, after those of the branch before.

    Attributes:
        pieces: the pieces, as strings.
        log_probability: the sum of their log P, in nats.
        branches: how the hypotheses continue, the best one's first; none at their end.
        ranks: which hypotheses share them, 1 being the best.
        score: what the hypothesis that ends here is ranked by; None if none does.
    """

    pieces: list[str]
    log_probability: float
    branches: list["Branch"]
    ranks: list[int]
    score: float | None


def tree(hypotheses: Sequence[Hypothesis]) -> Branch:
    """Join hypotheses where they begin alike.

    Args:
        hypotheses: best first, each with its pieces and their log P.

    Returns:
        The branch that all share, which may have no pieces.

    Raises:
        ValueError: if there is no hypothesis, or its pieces are not known.
    """
    if not hypotheses or hypotheses[0].pieces is None:
        raise ValueError(
            "--picture=n_best needs the pieces of several hypotheses, which a SavedModel does not "
            "tell. Name the folder of a run."
        )
    return _branch(list(enumerate(hypotheses, 1)), 0)


def _branch(ranked, start):
    """The branch of (rank, hypothesis) that are alike before piece `start`."""
    first = ranked[0][1]
    end = start
    while end < len(first.pieces) and _agree(ranked, end):
        end += 1
    groups = {}
    for rank, one in ranked:
        if end < len(one.pieces):
            groups.setdefault(one.pieces[end], []).append((rank, one))
    return Branch(
        first.pieces[start:end],
        sum(first.log_probabilities[start:end]),
        [_branch(group, end) for group in groups.values()],
        [rank for rank, _ in ranked],
        None if groups else first.score,
    )


def _agree(ranked, place):
    return len({tuple(one.pieces[place : place + 1]) for _, one in ranked}) == 1
