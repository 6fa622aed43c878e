"""Metrics side by side, each by its name and with sacrebleu's signature (Vaswani et al. 2017,
section 6.1, gives BLEU alone; Post 2018, "A Call for Clarity in Reporting BLEU Scores").
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sacrebleu
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from keras_transformer.evaluation.compounds import CompoundBLEU

RESAMPLES = 1000
# Tokenizers that sacrebleu has for one language, and the extra of sacrebleu that each needs.
OF_LANGUAGE = {"zh": ("zh", None), "ja": ("ja-mecab", "ja"), "ko": ("ko-mecab", "ko")}
OWN_TOKENIZER = "bleu_language"


class Named(NamedTuple):
    """One of sacrebleu's metrics, and what it is called in a table."""

    label: str
    metric: Metric


def bleu_of(tokenize: str, lowercase: bool = False) -> Metric:
    """Sacrebleu's BLEU.

    Raises:
        ValueError: if the tokenizer needs a package that is not installed.
    """
    try:
        # `force` silences sacrebleu's own warning of tokenized text; ours reads the references.
        return sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except RuntimeError as error:
        extra = dict(OF_LANGUAGE.values())[tokenize]
        raise ValueError(
            f"the tokenizer {tokenize} is not installed: pip install 'sacrebleu[{extra}]', or "
            "pass --tokenize=char."
        ) from error


def _bleu(tokenize, language):
    return Named(f"BLEU {tokenize}", bleu_of(tokenize))


def _lower_cased(tokenize, language):
    return Named(f"BLEU {tokenize}, lower-cased", bleu_of(tokenize, lowercase=True))


def _international(tokenize, language):
    return Named("BLEU intl", bleu_of("intl"))


def _of_language(tokenize, language):
    """BLEU by the language's own tokenizer, or of characters where that is not installed."""
    own, extra = OF_LANGUAGE[language]
    try:
        return Named(f"BLEU {own}", bleu_of(own))
    except ValueError:
        label = f"BLEU char ({own} needs: pip install 'sacrebleu[{extra}]')"
        return Named(label, bleu_of("char"))


def _compounds(tokenize, language):
    # Tokenizers other than these two split hyphens themselves.
    before = "none" if tokenize == "none" else "13a"
    return Named(f"BLEU {before}, compounds split", CompoundBLEU(before))


METRICS = {
    "bleu": _bleu,
    "bleu_intl": _international,
    "bleu_lc": _lower_cased,
    OWN_TOKENIZER: _of_language,
    "bleu_compounds": _compounds,
    "chrf": lambda tokenize, language: Named("chrF2", sacrebleu.CHRF()),
    "chrf++": lambda tokenize, language: Named("chrF2++", sacrebleu.CHRF(word_order=2)),
    "ter": lambda tokenize, language: Named("TER, lower is better", sacrebleu.TER()),
}


def choose(
    names: Iterable[str] | None, tokenize: str = "13a", language: str = ""
) -> dict[str, Named]:
    """Make metrics by their names.

    Args:
        names: keys of `METRICS`; None: all that the language has.
        tokenize: sacrebleu's tokenizer for `bleu` and `bleu_lc`.
        language: the target language's code, such as "de" or "zh-Hans"; "" if it is not known.

    Raises:
        ValueError: for an unknown name, a tokenizer that is not installed, or `bleu_language` of
            a language for which sacrebleu has no tokenizer.
    """
    language = language.replace("_", "-").partition("-")[0].lower()
    if names is None:
        names = [name for name in METRICS if name != OWN_TOKENIZER or language in OF_LANGUAGE]
    for name in names:
        if name not in METRICS:
            raise ValueError(
                f"--metrics must be names among {', '.join(METRICS)}, joined by commas. Received: "
                f"{name}."
            )
        if name == OWN_TOKENIZER and language not in OF_LANGUAGE:
            raise ValueError(
                f"--metrics={OWN_TOKENIZER}: sacrebleu has a tokenizer of their own for "
                f"{', '.join(OF_LANGUAGE)}, and the target language is "
                f"{language or 'not known'}. Leave it out, or pass --tokenize."
            )
    return {name: METRICS[name](tokenize, language) for name in names}


def measure(
    metrics: dict[str, Named],
    hypotheses: Sequence[str],
    references: Sequence[str],
    confidence: bool = False,
) -> dict[str, dict[str, Any]]:
    """Score translations by several metrics.

    Args:
        metrics: what `choose` gave.
        hypotheses: translations.
        references: as many, at least one.
        confidence: resample the sentences 1,000 times (Koehn 2004), with sacrebleu's seed.

    Returns:
        For each name a dictionary: `label`, `score` in points out of 100, `signature`, and with
        `confidence` the `mean` of the resamples and `interval`, half of what holds 95 % of them.
    """
    return {
        name: {"label": label, **_scored(metric, hypotheses, references, confidence)}
        for name, (label, metric) in metrics.items()
    }


def _scored(metric, hypotheses, references, confidence):
    if not confidence:
        score = metric.corpus_score(hypotheses, [references]).score
        return {"score": round(score, 2), "signature": str(metric.get_signature())}
    # The paired test of one system alone is its bootstrap. `corpus_score` has one too, which fails
    # where some resamples of chrF score 0 (sacrebleu 2.6: Python's float among NumPy's).
    alone = [("system", hypotheses)]
    resampled = PairedTest(alone, {"metric": metric}, [references], "bs", RESAMPLES)
    signatures, results = resampled()
    [(name, signature)] = signatures.items()
    [result] = results[name]
    numbers = {"score": result.score, "mean": result.mean, "interval": result.ci}
    rounded = {name: round(float(number), 2) for name, number in numbers.items()}
    return {**rounded, "signature": str(signature)}
