"""Paired tests against sacrebleu's command line."""

import pytest
from evaluation.systems import BAD, GOOD, REFERENCES, damaged, sacrebleu

from keras_transformer.evaluation import metrics
from keras_transformer.evaluation.significance import compare

NEAR = damaged(seed=3, kept=0.87)
ARGUMENTS = {"bootstrap": ["--paired-bs"], "approximate_randomization": ["--paired-ar"]}


@pytest.mark.parametrize("test", ARGUMENTS)
def test_differences_and_p_values_are_those_of_the_command_line(tmp_path, test):
    baseline, system = sacrebleu(tmp_path, [NEAR, GOOD], "-m", "bleu", *ARGUMENTS[test])
    ours = compare(metrics.choose(["bleu"]), NEAR, GOOD, REFERENCES, test)["bleu"]
    assert ours["baseline"] == round(baseline["BLEU"]["score"], 2)
    assert ours["score"] == round(system["BLEU"]["score"], 2)
    assert ours["p_value"] == round(system["BLEU"]["p_value"], 4)
    assert 0.01 < ours["p_value"] < 1
    assert ours["difference"] == pytest.approx(ours["score"] - ours["baseline"], abs=0.011)


def test_kinds_of_bleu_are_told_apart():
    """All of them are "BLEU" to sacrebleu."""
    names = ["bleu", "bleu_lc", "bleu_compounds"]
    compared = compare(metrics.choose(names), BAD, GOOD, REFERENCES)
    alone = metrics.measure(metrics.choose(names), GOOD, REFERENCES)
    scores = {name: one["score"] for name, one in compared.items()}
    assert scores == {name: one["score"] for name, one in alone.items()}
    assert len({*scores.values()}) == 3
    assert all("bs:1000|seed:12345" in one["signature"] for one in compared.values())


def test_a_large_difference_is_significant():
    for one in compare(metrics.choose(["bleu", "ter"]), BAD, GOOD, REFERENCES).values():
        assert one["p_value"] < 0.005


def test_one_system_twice_has_no_p_value():
    """Sacrebleu's would be 0.001, as if there were a difference."""
    [same] = compare(metrics.choose(["bleu"]), GOOD, list(GOOD), REFERENCES).values()
    assert same["difference"] == 0
    assert same["p_value"] is None
    # Another system with the same score is tested.
    other = [*GOOD[1:6], GOOD[0], *GOOD[6:]]
    shuffled = [*REFERENCES[1:6], REFERENCES[0], *REFERENCES[6:]]
    assert compare(metrics.choose(["bleu"]), other, GOOD, shuffled)["bleu"]["p_value"] is not None
