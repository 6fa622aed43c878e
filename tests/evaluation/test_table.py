"""Tables of scores, typed by hand."""

from keras_transformer.evaluation import table

SCORE = {"label": "BLEU 13a", "score": 41.5, "signature": "nrefs:1|tok:13a"}


def test_numbers_stand_under_each_other():
    ter = {"label": "TER, lower is better", "score": 8.123, "signature": "nrefs:1"}
    assert table.of_scores({"bleu": SCORE, "ter": ter}).splitlines() == [
        "metric                score  signature",
        "BLEU 13a              41.50  nrefs:1|tok:13a",
        "TER, lower is better   8.12  nrefs:1",
    ]


def test_an_interval_has_a_column_where_there_is_one():
    assert table.of_scores({"bleu": {**SCORE, "mean": 41.4, "interval": 1.25}}).splitlines() == [
        "metric    score  95 % interval  signature",
        "BLEU 13a  41.50   41.40 ± 1.25  nrefs:1|tok:13a",
    ]


def test_a_comparison_names_the_other_system_and_the_test():
    one = {**SCORE, "baseline": 40.0, "difference": 1.5, "p_value": 0.031}
    assert table.of_comparison({"bleu": one}, "old.de", "bootstrap").splitlines() == [
        "baseline: old.de; paired test: bootstrap",
        "metric    baseline  score  difference       p  signature",
        "BLEU 13a     40.00  41.50       +1.50  0.0310  nrefs:1|tok:13a",
    ]


def test_equal_translations_have_no_p_value():
    one = {**SCORE, "baseline": 41.5, "difference": 0.0, "p_value": None}
    row = table.of_comparison({"bleu": one}, "old.de", "bootstrap").splitlines()[-1]
    assert row.split() == ["BLEU", "13a", "41.50", "41.50", "+0.00", "-", "nrefs:1|tok:13a"]
