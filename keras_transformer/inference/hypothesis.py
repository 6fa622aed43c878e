"""One translation of a line, with what is known of it."""

from typing import NamedTuple


class Hypothesis(NamedTuple):
    """One translation of a line.

    Attributes:
        text: the translation.
        score: what hypotheses are ranked by: log P(Y | X) / lp(Y) + cp(X; Y) of a beam of 2 or
            more, log P(Y | X) of greedy search (a beam of 1) and of samples.
        pieces: its tokens, EOS among them; None where a SavedModel was asked for other options than
            its own.
        log_probabilities: log P of each token, in nats; None as `pieces`.
    """

    text: str
    score: float
    pieces: list[str] | None
    log_probabilities: list[float] | None

    def as_dict(self) -> dict:
        """What `translate --json` writes, numbers rounded to 5 digits."""
        told = {"translation": self.text, "score": round(self.score, 5)}
        if self.pieces is None:
            return told
        pairs = zip(self.pieces, self.log_probabilities, strict=True)
        return told | {
            "log_probability": round(sum(self.log_probabilities), 5),
            "pieces": [[piece, round(value, 5)] for piece, value in pairs],
        }
