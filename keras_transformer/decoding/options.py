"""All options of decoding: section 6.1's beam search by default, and what else users of translators
expect.
"""

import dataclasses
import math
import re
from fractions import Fraction

import tensorflow as tf

from keras_transformer.decoding.beam_search import BeamSearch
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.greedy import GreedySearch
from keras_transformer.decoding.penalty_sweep import PenaltySweep
from keras_transformer.decoding.sampling import Sampling

# A longer source is cut in the graph, and refused before it gets there.
MAX_SOURCE_LENGTH = 1024
MOST_TOKENS = 2**31 - 1
LENGTH = re.compile(r"(?:(?P<factor>\d+(?:\.\d+)?)x)?(?P<extra>\+?\d+)?")


@dataclasses.dataclass(frozen=True)
class DecodingOptions:
    """How to decode. Options that exclude each other are refused.

    Lengths count tokens with EOS: 80 means 80 tokens, "+50" 50 more than the source has, "1.5x" one
    and a half times as many as the source, "2x+10" both.

    Args:
        beam_size: K, hypotheses kept; 1 is greedy search. Default: the paper's 4.
        length_penalty: alpha of ((5 + |Y|) / 6)^alpha. Default: the paper's 0.6.
        coverage_penalty: beta of Wu et al. 2016, eq. 14; 0: no penalty.
        num_hypotheses: how many translations of a sentence to return, best first.
        max_length: the longest translation; by default the paper's "+50".
        min_length: the shortest translation; by default a word and EOS, because the likeliest
            translation of a hard sentence is often empty.
        no_repeat_ngram_size: n; no n tokens in a row come twice in a translation. 0: no such rule.
        repetition_penalty: above 1, tokens that have come before get less likely.
        constrained: search only among what is well formed, where a task knows what that is: a
            parser's trees.
        samples: draw so many translations instead of searching, and return the likeliest of them;
            0: search.
        temperature, top_k, top_p, seed: how translations are drawn, see `Sampling`. Defaults: 1,
            all tokens, all of the probability, 1.

    Raises:
        ValueError: naming the argument, or the arguments that exclude each other and why.
    """

    beam_size: int | None = None
    length_penalty: float | None = None
    coverage_penalty: float = 0.0
    num_hypotheses: int = 1
    max_length: int | str = "+50"
    min_length: int | str = "2"
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    constrained: bool = False
    samples: int = 0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def __post_init__(self):
        if not isinstance(self.samples, int) or self.samples < 0:
            raise ValueError(
                f"`samples` must be an integer, at least 0. Received: samples={self.samples}."
            )
        self._refuse_what_excludes_each_other()
        # 80 and "80" mean the same.
        for name in ("min_length", "max_length"):
            object.__setattr__(self, name, str(getattr(self, name)))
        shortest = parse_length("min_length", self.min_length)
        longest = parse_length("max_length", self.max_length)
        if all(
            _tokens(shortest, source) > _tokens(longest, source)
            for source in (1, 2, MAX_SOURCE_LENGTH)
        ):
            raise ValueError(
                "`min_length` must not be above `max_length`. Received: "
                f"min_length={self.min_length}, max_length={self.max_length}."
            )
        self.search()

    def _refuse_what_excludes_each_other(self):
        def given(*names):
            return next(
                (
                    f"{name}={getattr(self, name)}"
                    for name in names
                    if getattr(self, name) is not None
                ),
                None,
            )

        search = given(
            "beam_size", "length_penalty", *(["coverage_penalty"] if self.coverage_penalty else [])
        )
        if self.samples and search:
            raise ValueError(
                f"samples={self.samples} and {search} exclude each other: what is drawn is not "
                "searched for. Leave one out."
            )
        drawing = given("temperature", "top_k", "top_p", "seed")
        if not self.samples and drawing:
            raise ValueError(
                f"{drawing} shapes what is drawn, and without `samples` nothing is. Add "
                "samples=1 or more, or leave it out."
            )
        if self.samples > 1 and self.top_k == 1:
            raise ValueError(
                f"top_k=1 draws the same translation {self.samples} times. Leave `samples` and "
                "`top_k` out for beam_size=1."
            )
        if self.constrained and self.no_repeat_ngram_size:
            raise ValueError(
                f"constrained=True and no_repeat_ngram_size={self.no_repeat_ngram_size} exclude "
                "each other: trees repeat their symbols. Leave one out."
            )
        if self.coverage_penalty and self.beam_size == 1:
            raise ValueError(
                f"coverage_penalty={self.coverage_penalty} chooses among hypotheses, and "
                "beam_size=1 has one. Raise beam_size."
            )

    def search(self) -> BeamSearch | GreedySearch:
        """The search of these options: a `BeamSearch`, a `GreedySearch` or its kind `Sampling`."""
        if self.samples:
            return self.sampling(samples=self.samples, num_hypotheses=self.num_hypotheses)
        beam = self.beam()
        return GreedySearch(self.constraints()) if beam.beam_size == 1 else beam

    def search_for_all(self) -> BeamSearch | GreedySearch:
        """The same search, which returns all that it keeps: the whole beam, or all samples."""
        kept = self.samples or self.beam().beam_size
        return dataclasses.replace(self, num_hypotheses=kept).search()

    def greedy(self) -> "DecodingOptions":
        """Greedy search by the same rules: lengths, repetitions and `constrained`."""
        names = (
            "max_length",
            "min_length",
            "no_repeat_ngram_size",
            "repetition_penalty",
            "constrained",
        )
        return DecodingOptions(beam_size=1, **self._given(*names))

    def beam(self, **other) -> BeamSearch:
        """The `BeamSearch` of these options; `other` replaces some of them."""
        names = ("beam_size", "length_penalty", "num_hypotheses", "coverage_penalty")
        return BeamSearch(**self._given(*names) | other, constraints=self.constraints())

    def sweep(self, beam_size: tf.Tensor, length_penalties: tf.Tensor) -> PenaltySweep:
        """The search of these options for several length penalties at once.

        Args:
            beam_size: K, (1,).
            length_penalties: float32 (A,).
        """
        return PenaltySweep(beam_size, length_penalties, self.coverage_penalty, self.constraints())

    def sampling(self, **other) -> Sampling:
        """The `Sampling` of one translation by these options; `other` replaces some of them."""
        return Sampling(
            **self._given("temperature", "top_k", "top_p", "seed") | other,
            constraints=self.constraints(),
        )

    def _given(self, *names):
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def constraints(self, kind: type[Constraints] = Constraints, **more) -> Constraints:
        """The rules on tokens of these options.

        Args:
            kind: `Constraints` or a subclass.
            more: what that needs besides.
        """
        return kind(self.no_repeat_ngram_size, self.repetition_penalty, **more)

    def limits(self, source_lengths: tf.Tensor) -> tf.Tensor:
        """Most tokens of each translation, int32 (B,).

        Args:
            source_lengths: tokens of each source with EOS, integers (B,).
        """
        return _limits(parse_length("max_length", self.max_length), source_lengths)

    def minima(self, source_lengths: tf.Tensor) -> tf.Tensor | None:
        """Fewest tokens of each translation, int32 (B,), or None if one is enough for all."""
        shortest = parse_length("min_length", self.min_length)
        return None if shortest == (0, 1) else _limits(shortest, source_lengths)


def parse_length(name: str, length: int | str) -> tuple[Fraction, int]:
    """Read a length: a factor on the source's tokens, and how many more.

    Args:
        name: the name of the argument, for the error.
        length: such as 80, "80", "+50", "1.5x" or "2x+10".

    Returns:
        (factor, extra).

    Raises:
        ValueError: if it is not of that form, less than one token, or more than an int32 of the
            longest source.
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
    if _tokens(tokens, MAX_SOURCE_LENGTH) > MOST_TOKENS:
        raise ValueError(
            f"`{name}` must be at most {MOST_TOKENS:,} tokens for a source of "
            f"{MAX_SOURCE_LENGTH:,}. Received: {name}={length}."
        )
    return tokens


def _tokens(length, source):
    return math.ceil(length[0] * source) + length[1]


def _limits(length, source_lengths):
    factor, extra = length
    # In integers, because in float64 1.1 times 50 is more than 55.
    relative = -(-tf.cast(source_lengths, tf.int64) * factor.numerator // factor.denominator)
    return tf.maximum(tf.cast(relative, tf.int32) + extra, 1)
