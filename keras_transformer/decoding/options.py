"""All options of decoding: section 6.1's beam search by default, and what else users of translators
expect.
"""

import dataclasses

from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH, in_tokens, limits, parse_length
from pipelines.options import REPORTED, Options, option
from pipelines.whole_files import read_words

OR_ITS_OWN = (
    "or the value that the SavedModel was exported with, or that the run of a translator or parser "
    "was trained with."
)
# The paper's.
BEAM_SIZE = 4
LENGTH_PENALTY = 0.6
# Bounds of the options of a request. An export with a wider beam than this allows its own.
MOST_HYPOTHESES = 32
STEEPEST_PENALTY = 10.0
TEMPERATURES = (1e-3, 1e3)
# Number of likely next tokens that a server shows.
NEXT_PIECES = 20
# Rules on a text, for any search and for samples.
RULES = (
    *("max_length", "min_length", "no_repeat_ngram_size", "repetition_penalty", "constrained"),
    *("barred", "protect_all", "forbidden_words"),
)


class DecodingOptions(Options):
    """Search.

    Options that exclude each other are refused. Lengths count tokens, EOS included: 80 is 80
    tokens, "+50" 50 more than the source, "1.5x" one and a half times the source, "2x+10" both.
    """

    resumed = REPORTED

    beam_size: int | None = option(
        None,
        "Number of hypotheses that beam search keeps; 1 is greedy search. Default: 4, "
        f"{OR_ITS_OWN} The command generate samples, unless this or another flag asks for a "
        "search.",
        at_least=1,
        at_most=1_000,
        is_unset=True,
    )
    length_penalty: float | None = option(
        None,
        "Exponent alpha of the length penalty ((5 + length) / 6)^alpha; 0: no penalty. Default: "
        f"0.6, {OR_ITS_OWN}",
        at_least=0,
        is_unset=True,
    )
    length_penalty_form: str = option(
        "paper",
        "How a translation's score, log P, is divided. paper: by ((5 + length) / 6)^alpha. length: "
        f"by length^alpha, as Marian does. Default: paper, {OR_ITS_OWN}",
        choices=("paper", "length"),
        is_unset=True,
    )
    beam_form: str = option(
        "leaving",
        "What becomes of a translation that ends. leaving: it leaves the beam to others. "
        "shrinking: its place in the beam goes with it, as in Marian. staying: it keeps a place "
        "until all have ended, as in OpenNMT-tf. until_full: it leaves, and the search stops when "
        "beam_size have ended, as with Hugging Face's early_stopping=true. until_worse: then the "
        "search goes on while another would score better if it ended now, as with "
        f"early_stopping=false. Default: leaving, {OR_ITS_OWN}",
        choices=("leaving", "shrinking", "staying", "until_full", "until_worse"),
        is_unset=True,
    )
    blockwise: bool = option(
        False,
        "Search greedily, a block of tokens at a time: the same translations as --beam_size=1, in "
        f"fewer steps. The model needs a --block_size of 2 or more. Default: no, {OR_ITS_OWN}",
        is_unset=True,
    )
    coverage_penalty: float = option(
        0.0,
        "Weight beta of the penalty for source words that were not attended to (Wu et al. 2016, "
        f"eq. 14); 0: no penalty. Default: 0, {OR_ITS_OWN}",
        at_least=0,
        is_unset=True,
    )
    num_hypotheses: int = option(
        1,
        "Number of translations of a line, best first. More than one: translate needs --json.",
        at_least=1,
    )
    # The paper's default.
    max_length: str = option(
        "+50",
        'Limit of a translation in pieces, its end included: 80, "+50" more than the source, '
        f'"1.5x" the source, or "2x+10". Default: +50, for a parser +300, {OR_ITS_OWN}',
        is_unset=True,
    )
    # A word and EOS, because the likeliest translation of a hard sentence is often empty.
    min_length: str = option(
        "2",
        "Fewest pieces of a translation, its end included, written as --max_length. Default: 2, "
        f"for a parser 1, {OR_ITS_OWN}",
        is_unset=True,
    )
    no_repeat_ngram_size: int = option(
        0,
        "Number n: no n pieces in a row may come twice in a translation; 0: all may repeat. "
        f"Default: 0, {OR_ITS_OWN}",
        at_least=0,
        is_unset=True,
    )
    repetition_penalty: float = option(
        1.0,
        "Factor above 1 that makes pieces less likely once they have come before. Default: 1, "
        f"{OR_ITS_OWN}",
        at_least=1e-9,
        is_unset=True,
    )
    constrained: bool = option(
        False,
        "Let a parser write only well-formed trees over the words of the sentence. Otherwise its "
        f"output is repaired afterwards. Default: no, {OR_ITS_OWN}",
        is_unset=True,
    )
    protect_all: bool = option(
        True,
        "Let a translation end only when it has each span that --protect names exactly as often "
        f"as the source. Default: yes, {OR_ITS_OWN}",
        is_unset=True,
    )
    forbidden: str | None = option(
        None,
        "File of words and phrases, one a line, that a translation never has. One in lower case "
        f"is forbidden with a capital too. Default: none, {OR_ITS_OWN}",
        path=True,
        is_unset=True,
    )
    samples: int = option(
        0,
        "Number of translations to draw instead of a search; the likeliest is given. 0: search. "
        "generate draws one if no flag asks for a search.",
        at_least=0,
    )
    temperature: float | None = option(
        None,
        "Temperature of samples; below 1, likely pieces are drawn more often. Default: 1.",
        at_least=1e-9,
    )
    top_k: int | None = option(
        None,
        "Number of likeliest pieces that samples are drawn from. Default: all pieces.",
        at_least=0,
    )
    top_p: float | None = option(
        None,
        "Samples are drawn from the likeliest pieces that hold this share of the probability. "
        "Default: 1, in generate 0.9.",
        at_least=1e-9,
        at_most=1,
    )
    seed: int | None = None
    # A multilingual model's languages of texts and translations that do not name theirs.
    source_language: str | None = None
    target_language: str | None = None
    barred: tuple[int, ...] = ()  # ids that never come
    forbidden_words: tuple[str, ...] = ()  # the contents of the file `forbidden`

    def __post_init__(self):
        path = self.forbidden
        if path and not (isinstance(path, str) or hasattr(path, "__fspath__")):
            received = f"Received: forbidden={path}."
            raise ValueError(f"`forbidden` must be a file; see `forbidden_words`. {received}")
        words = read_words(path) if path else self.forbidden_words
        is_list = hasattr(words, "__iter__") and not isinstance(words, str)
        words = tuple(words) if is_list else (None,)
        if not all(isinstance(word, str) for word in words):
            received = f"Received: forbidden_words={self.forbidden_words}."
            raise ValueError(f"`forbidden_words` must be a list of strings. {received}")
        barred = tuple(self.barred) if hasattr(self.barred, "__iter__") else (None,)
        if not all(hasattr(number, "__index__") and number >= 0 for number in barred):
            received = f"Received: barred={self.barred}."
            raise ValueError(f"`barred` must be a list of ids, each at least 0. {received}")
        seed = 0 if self.seed is None else self.seed
        if not (hasattr(seed, "__index__") and -(2**63) <= seed < 2**63):
            raise ValueError(f"`seed` must be an integer of 64 bits. Received: seed={self.seed}.")
        # 80 and "80" mean the same.
        lengths = {name: str(getattr(self, name)) for name in ("min_length", "max_length")}
        lists = {"barred": tuple(map(int, barred)), "forbidden_words": words, "forbidden": None}
        for name, value in (lengths | lists).items():
            object.__setattr__(self, name, value)
        if self.blockwise and self.beam_size is None and not self.samples:
            object.__setattr__(self, "beam_size", 1)
        super().__post_init__()
        self._refuse_conflicts()
        shortest = parse_length("min_length", self.min_length)
        longest = parse_length("max_length", self.max_length)
        sources = (1, 2, MAX_SOURCE_LENGTH)
        if all(in_tokens(shortest, source) > in_tokens(longest, source) for source in sources):
            received = f"Received: min_length={self.min_length}, max_length={self.max_length}."
            raise ValueError(f"`min_length` must not be above `max_length`. {received}")
        bound = "samples" if self.samples else "beam_size"
        most = self.samples or self.beam_size or BEAM_SIZE
        if self.num_hypotheses > most:
            received = f"Received: num_hypotheses={self.num_hypotheses}."
            raise ValueError(f"`num_hypotheses` must lie in 1..{bound}={most}. {received}")

    def _refuse_conflicts(self):
        def first_set(*names):
            return next((f"{name}={value}" for name, value in self._set(*names).items()), None)

        size = first_set("samples" if self.samples else "beam_size")
        if self.blockwise and size != "beam_size=1":
            raise ValueError(f"blockwise=True is greedy search. Received: {size}. Leave one out.")
        of_coverage = ["coverage_penalty"] if self.coverage_penalty else []
        search = first_set("beam_size", "length_penalty", *of_coverage)
        if self.samples and search:
            raise ValueError(
                f"samples={self.samples} and {search} exclude each other: samples are drawn "
                "without a search. Leave one out."
            )
        drawing = first_set("temperature", "top_k", "top_p", "seed")
        if not self.samples and drawing:
            raise ValueError(
                f"{drawing} is an option of samples. Add samples=1 or more, or leave it out."
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
        conflicts = {"beam_size": 1, "beam_form": "staying"}
        for name, value in conflicts.items() if self.coverage_penalty else ():
            if getattr(self, name) == value:
                raise ValueError(
                    f"coverage_penalty={self.coverage_penalty} chooses among hypotheses that "
                    f"leave the beam as they end. Received: {name}={value}. Change one."
                )

    def search(self):
        """Make the search of these options, a `BeamSearch` or a kind of `GreedySearch`."""
        from keras_transformer.decoding import BlockwiseSearch, GreedySearch

        if self.samples:
            return self.sampling(samples=self.samples, num_hypotheses=self.num_hypotheses)
        if self.beam_size == 1:
            return (BlockwiseSearch if self.blockwise else GreedySearch)(self.constraints())
        return self.beam()

    def search_for_all(self):
        """Make a `search` that returns the whole beam, or all samples."""
        most = self.samples or self.beam().beam_size
        return dataclasses.replace(self, num_hypotheses=most).search()

    def greedy(self, blockwise: bool = False) -> "DecodingOptions":
        """Return options of greedy search under the same `RULES`."""
        return DecodingOptions(beam_size=1, blockwise=blockwise, **self._set(*RULES))

    def beam(self, **changes):
        """Make the `BeamSearch` of these options with some changes."""
        from keras_transformer.decoding.other_beams import BEAMS

        names = ("beam_size", "length_penalty", "length_penalty_form", "num_hypotheses")
        own = self._set(*names, "coverage_penalty")
        return BEAMS[self.beam_form](**own | changes, constraints=self.constraints())

    def sampling(self, **changes):
        """Make the `Sampling` of one translation by these options with some changes."""
        from keras_transformer.decoding.sampling import Sampling

        return Sampling(
            **self._set("temperature", "top_k", "top_p", "seed") | changes,
            constraints=self.constraints(),
        )

    def _set(self, *names):
        """Return the options of these names that are not None."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def constraints(self, kind: type | None = None, **more):
        """Make the `Constraints` of these options, or a subclass with more arguments."""
        from keras_transformer.decoding.constraints import Constraints

        return (kind or Constraints)(
            self.no_repeat_ngram_size, self.repetition_penalty, barred=self.barred, **more
        )

    def limits(self, source_lengths):
        """Return the largest length of each translation, int32 (B,), for source lengths (B,)."""
        return limits(parse_length("max_length", self.max_length), source_lengths)

    def minima(self, source_lengths):
        """Return the smallest length of each translation, int32 (B,), or None if all may be 1."""
        shortest = parse_length("min_length", self.min_length)
        return None if shortest == (0, 1) else limits(shortest, source_lengths)
