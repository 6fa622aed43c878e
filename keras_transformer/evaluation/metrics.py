"""Metrics of translations, with sacrebleu's signatures (Vaswani et al. 2017, section 6.1, reports
BLEU alone, Papineni et al. 2002; Post 2018, "A Call for Clarity in Reporting BLEU Scores"), and
tests whether one system is better than another by chance (Koehn 2004; Riezler and Maxwell 2005).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sacrebleu
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

RESAMPLES = 1000
# Sacrebleu's names of paired tests, by our flag's.
TESTS = {"bootstrap": "bs", "approximate_randomization": "ar"}
# Sacrebleu's tokenizer for a language, and the extra of the package that it needs.
LANGUAGE_TOKENIZERS = {"zh": ("zh", None), "ja": ("ja-mecab", "ja"), "ko": ("ko-mecab", "ko")}
OWN_TOKENIZER = "bleu_language"
# Languages, by ISO 639, and scripts without spaces between words, by the tokenizer that they need.
# Korean has spaces, but its words are too long to be counted whole.
JAPANESE = ("ja", "jpn")
KOREAN = ("ko", "kor")
UNSPACED = {
    "zh": {
        *("zh", "zho", "chi", "cmn", "yue", "wuu", "gan", "hak", "hsn", "lzh", "cdo", "cjy"),
        *("hans", "hant", "hani", "hanb"),
    },
    "char": {
        *(*JAPANESE, *KOREAN, "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "bo"),
        *("bod", "tib", "dz", "dzo", "shn", "mnw", "nod", "khb", "ksw", "rki", "jpan", "hira"),
        *("kana", "hrkt", "kore", "hang", "thai", "laoo", "khmr", "mymr", "tibt", "java", "lana"),
    },
}
# A language code, and optionally another code, a script and a region, in lower case. Wikipedia's
# zh-classical is such a code too; its zh-min-nan, which is none, is in Latin letters.
LANGUAGE_TAG = re.compile(
    r"([a-z]{2,3})(?:-[a-z]{3}|-classical)?(?:-([a-z]{4}))?(?:-(?:[a-z]{2}|\d{3}))?"
)
HYPHEN = re.compile(r"(\S)-(\S)")
# Traces of a tokenizer: a detached full stop, comma or 's; Moses' entities and hyphens; subword
# marks.
TRACES = re.compile(
    r"(?<=\S) (?:[.,]|'s)(?=\s|$)|@-@|@@(?= |$)|##AT##|&(?:apos|quot|amp|lt|gt|#\d+);"
)
# On Multi30k and Home Assistant 95 to 99 % of tokenized lines have a trace, others at most 0.1 %.
SUSPICIOUS_SHARE = 0.1
# Metrics that count what stands between spaces.
NEEDS_SPACES = ("bleu_intl", "bleu_compounds", "chrf++")


def split_compounds(text: str) -> str:
    """Put spaces around each hyphen inside a word: "a-b" becomes "a ##AT##-##AT## b".

    Matches do not overlap, as in the paper's script: of "a-b-c" only the first hyphen is split,
    because b belongs to the first match; in "rich-text-format" both are.
    """
    return HYPHEN.sub(r"\1 ##AT##-##AT## \2", text)


class CompoundBLEU(sacrebleu.BLEU):
    """BLEU as the paper counted it on English-German (Vaswani et al. 2017, table 2): compounds are
    split as in tensor2tensor's `get_ende_bleu`; no smoothing, as in multi-bleu.perl.

    A split compound is three tokens instead of one, so that scores are higher than without
    (Post 2018, "A Call for Clarity in Reporting BLEU Scores"). The paper's script tokenizes with
    Moses' tokenizer.perl; `tokenize="none"` takes text that was tokenized by it.

    Args:
        tokenize: sacrebleu's tokenizer, which must leave hyphens inside words: "13a" or "none".
    """

    def __init__(self, tokenize: str = "13a"):
        super().__init__(tokenize=tokenize, smooth_method="none", force=True)
        self.tokenizer_signature += "+compounds"

    def _preprocess_segment(self, sent):
        return split_compounds(super()._preprocess_segment(sent))


class Named(NamedTuple):
    """One of sacrebleu's metrics, and its label in tables."""

    label: str
    metric: Metric


def tokenizer_of(language: str, tokenize: str | None = None) -> str:
    """Return the tokenizer for BLEU: the value of --tokenize, if any, or else that of the target
    language, such as "de", "zh_TW" or "yue-Hant". "zh" is for Chinese: it splits Chinese text into
    characters, and leaves other words whole. "char" is for languages whose words need a dictionary,
    "13a" for the rest. For several languages, joined by "+", it is the finest.
    """
    if tokenize:
        return tokenize
    needed = set(map(_tokenizer_of_one, language.split("+")))
    return next((name for name in ("char", "zh") if name in needed), "13a")


def _tokenizer_of_one(language):
    tag = LANGUAGE_TAG.fullmatch(language.lower().replace("_", "-"))
    code, script = tag.groups() if tag else ("", None)
    # The script decides: Pinyin, zh-Latn, has spaces.
    return next((name for name, tags in UNSPACED.items() if (script or code) in tags), "13a")


def bleu_of(tokenize: str, lowercase: bool = False) -> Metric:
    """Make sacrebleu's BLEU."""
    try:
        # `force` silences sacrebleu's warning of tokenized text; `warning` replaces it.
        return sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except RuntimeError as error:
        extra = dict(LANGUAGE_TOKENIZERS.values())[tokenize]
        raise ValueError(
            f"the tokenizer {tokenize} is not installed: pip install 'sacrebleu[{extra}]', or "
            "pass --tokenize=char."
        ) from error


def _of_language(tokenize, language):
    """Make BLEU with the language's own tokenizer; of characters if that is not installed."""
    own, extra = LANGUAGE_TOKENIZERS[language]
    try:
        return Named(f"BLEU {own}", bleu_of(own))
    except ValueError:
        label = f"BLEU char ({own} needs: pip install 'sacrebleu[{extra}]')"
        return Named(label, bleu_of("char"))


def _compounds(tokenize, language):
    # Tokenizers other than these two split hyphens themselves.
    before = "none" if tokenize == "none" else "13a"
    return Named(f"BLEU {before}, compounds split", CompoundBLEU(before))


def _ter(tokenize, language):
    """Make TER; in Chinese and Japanese sacrebleu counts each ideograph as a word."""
    asian = tokenizer_of(language) == "zh" or language in JAPANESE
    return Named("TER, lower is better", sacrebleu.TER(normalized=asian, asian_support=asian))


METRICS = {
    "bleu": lambda tokenize, language: Named(f"BLEU {tokenize}", bleu_of(tokenize)),
    "bleu_intl": lambda tokenize, language: Named("BLEU intl", bleu_of("intl")),
    "bleu_lc": lambda tokenize, language: Named(
        f"BLEU {tokenize}, lower-cased", bleu_of(tokenize, lowercase=True)
    ),
    OWN_TOKENIZER: _of_language,
    "bleu_compounds": _compounds,
    "chrf": lambda tokenize, language: Named("chrF2", sacrebleu.CHRF()),
    "chrf++": lambda tokenize, language: Named("chrF2++", sacrebleu.CHRF(word_order=2)),
    "ter": _ter,
}


def choose(
    names: Iterable[str] | None, tokenize: str | None = None, language: str = ""
) -> dict[str, Named]:
    """Make metrics by their names, keys of `METRICS`; None: all that suit the target language,
    which is "" if it is not known. `tokenize` is for `bleu` and `bleu_lc`; None: `tokenizer_of` the
    language.
    """
    tokenize = tokenizer_of(language, tokenize)
    needed = tokenizer_of(language)
    language = language.replace("_", "-").partition("-")[0].lower()
    if names is None:
        own, _ = LANGUAGE_TOKENIZERS.get(language, (tokenize, None))
        # Written with spaces, such as in Latin letters, a language needs no tokenizer of its own.
        left_out = [OWN_TOKENIZER] if own == tokenize or needed == "13a" else []
        if needed != "13a" and language not in KOREAN:
            left_out += NEEDS_SPACES
        if needed == "char" and language not in (*JAPANESE, *KOREAN):
            left_out.append("ter")
        names = [name for name in METRICS if name not in left_out]
    for name in names:
        if name == OWN_TOKENIZER and language not in LANGUAGE_TOKENIZERS:
            raise ValueError(
                f"--metrics={OWN_TOKENIZER}: sacrebleu has a language's own tokenizer only for "
                f"{', '.join(LANGUAGE_TOKENIZERS)}, and the target language is "
                f"{language or 'not known'}. Leave it out, or pass --tokenize."
            )
    return {name: METRICS[name](tokenize, language) for name in names}


def measure(
    metrics: dict[str, Named],
    hypotheses: Sequence[str],
    references: Sequence[str],
    confidence: bool = False,
) -> dict[str, dict[str, Any]]:
    """Score translations by the metrics of `choose`. By name, return the `label`, the `score` in
    points out of 100 and the `signature`. With `confidence` the sentences are resampled 1,000 times
    (Koehn 2004), with sacrebleu's seed: `mean` is that of the resamples, and `interval` half the
    width of their 95 % interval.
    """
    return {
        name: {"label": label, **_scored(metric, hypotheses, references, confidence)}
        for name, (label, metric) in metrics.items()
    }


def _scored(metric, hypotheses, references, confidence):
    if not confidence:
        score = metric.corpus_score(hypotheses, [references]).score
        return {"score": round(score, 2), "signature": str(metric.get_signature())}
    # The paired test of a single system is its bootstrap. That of `corpus_score` fails if some
    # resamples of chrF score 0 (sacrebleu 2.6: Python's float among NumPy's).
    systems = [("system", hypotheses)]
    signature, [result] = _tested(metric, systems, references, "bootstrap", RESAMPLES)
    numbers = {"score": result.score, "mean": result.mean, "interval": result.ci}
    rounded = {name: round(float(number), 2) for name, number in numbers.items()}
    return {**rounded, "signature": signature}


def compare(
    metrics: dict[str, Named],
    baseline: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    test: str = "bootstrap",
) -> dict[str, dict[str, Any]]:
    """Test the difference of two systems on the same sentences, with sacrebleu's seed. `p_value` is
    the probability of so large a difference between equal systems. It is 1 for equal scores, and
    None if all translations are equal: of what a metric cannot tell apart sacrebleu would return
    its smallest value.
    """
    systems = [("baseline", baseline), ("system", hypotheses)]
    comparison = {}
    for name, (label, metric) in metrics.items():
        signature, (theirs, ours) = _tested(metric, systems, references, test)
        p_value = 1.0 if ours.score == theirs.score else round(ours.p_value, 4)
        comparison[name] = {
            "label": label,
            "baseline": round(theirs.score, 2),
            "score": round(ours.score, 2),
            "difference": round(ours.score - theirs.score, 2),
            "p_value": None if baseline == hypotheses else p_value,
            "signature": signature,
        }
    return comparison


def _tested(metric, systems, references, test, *samples):
    """Run sacrebleu's paired test. Return the metric's signature, and a result for each system.
    Test one metric at a time: the results of all kinds of BLEU have the same name.
    """
    paired = PairedTest(systems, {"metric": metric}, [references], TESTS[test], *samples)
    signatures, results = paired()
    [(name, signature)] = signatures.items()
    return str(signature), results[name]


def score(hypotheses, references, tokenize="13a"):
    """Return corpus BLEU and chrF of cased text, one reference a sentence, in points out of 100,
    with their signatures and the number of sentences.
    """
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"BLEU needs one reference a hypothesis, at least one. Received: {len(hypotheses)} "
            f"and {len(references)}."
        )
    bleu = bleu_of(tokenize)
    chrf = sacrebleu.CHRF()
    return {
        "bleu": round(bleu.corpus_score(hypotheses, [references]).score, 2),
        "chrf": round(chrf.corpus_score(hypotheses, [references]).score, 2),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "sentences": len(references),
    }


def warning(references: Sequence[str], tokenize: str) -> str | None:
    """Return a warning if references that look tokenized are to be tokenized again. A ValueError
    says that the tokenizer is not installed, before anything is trained or translated.
    """
    bleu_of(tokenize)
    tokenized = [line for line in references if TRACES.search(line)]
    share = len(tokenized) / len(references)
    if tokenize == "none" or share < SUSPICIOUS_SHARE:
        return None
    return (
        f"{share:.0%} of the references look tokenized, such as {tokenized[0]!r}. BLEU with the "
        f"tokenizer {tokenize} then equals neither that of detokenized text nor published figures "
        "of tokenized text. Pass --tokenize=none for the latter."
    )
