"""Whether one system is better than another by more than chance (Koehn 2004; Riezler and Maxwell
2005): sacrebleu's paired tests.
"""

from collections.abc import Sequence
from typing import Any

from sacrebleu.significance import PairedTest

from keras_transformer.evaluation.metrics import Named

# By the name of the flag: sacrebleu's name, and how often it resamples or shuffles.
TESTS = {"bootstrap": "bs", "approximate_randomization": "ar"}


def compare(
    metrics: dict[str, Named],
    baseline: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    test: str = "bootstrap",
) -> dict[str, dict[str, Any]]:
    """Test the difference of two systems on the same sentences, with sacrebleu's seed.

    Returns:
        For each name a dictionary: `label`, `baseline`, `score`, `difference`, `p_value`, the
        probability of so large a difference between equal systems, and `signature`. `p_value` is
        None where every translation is the same: sacrebleu would give its smallest value there.
    """
    return {
        name: {
            "label": label,
            **_compared(metric, [("baseline", baseline), ("system", hypotheses)], references, test),
        }
        for name, (label, metric) in metrics.items()
    }


def _compared(metric, systems, references, test):
    # One metric at a time: sacrebleu gives the results of several kinds of BLEU the same name.
    paired = PairedTest(systems, {"metric": metric}, [references], test_type=TESTS[test])
    signatures, results = paired()
    [(name, signature)] = signatures.items()
    baseline, system = results[name]
    (_, theirs), (_, ours) = systems
    return {
        "baseline": round(baseline.score, 2),
        "score": round(system.score, 2),
        "difference": round(system.score - baseline.score, 2),
        "p_value": None if theirs == ours else round(system.p_value, 4),
        "signature": str(signature),
    }
