"""Metrics side by side against sacrebleu's command line."""

import sys

import pytest
from evaluation.systems import BAD, GOOD, REFERENCES, sacrebleu

from keras_transformer.evaluation import metrics

# By the arguments of sacrebleu's command line, what it then prints: our names and its own.
ARGUMENTS = {
    "-m bleu chrf ter": {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"},
    "-m bleu chrf -tok intl --chrf-word-order 2": {"bleu_intl": "BLEU", "chrf++": "chrF2++"},
    "-m bleu -lc": {"bleu_lc": "BLEU"},
    "-m bleu -tok zh": {"bleu_language": "BLEU"},
}
NAMES = [name for names in ARGUMENTS.values() for name in names]


def measured(name, tokenize="13a", confidence=False):
    chosen = metrics.choose([name], tokenize, "zh-Hans")
    return metrics.measure(chosen, GOOD, REFERENCES, confidence)[name]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_scores_and_intervals_are_those_of_the_command_line(tmp_path, arguments):
    printed = sacrebleu(tmp_path, [GOOD], *arguments.split(), "--confidence")
    theirs = {one["name"]: one for one in (printed if isinstance(printed, list) else [printed])}
    for name, their_name in ARGUMENTS[arguments].items():
        scored = measured(name, confidence=True)
        assert scored.pop("label")
        assert scored == {
            "score": round(theirs[their_name]["score"], 2),
            "signature": theirs[their_name]["signature"],
            "mean": round(theirs[their_name]["confidence_mean"], 2),
            "interval": round(theirs[their_name]["confidence_var"], 2),
        }
        assert 0 < scored["interval"] < 15
        assert "bs:1000|seed:12345" in scored["signature"]


@pytest.mark.parametrize(("name", "tokenize"), [("bleu", "char"), ("bleu_lc", "none")])
def test_bleu_is_counted_with_the_tokenizer_that_is_asked_for(tmp_path, name, tokenize):
    case = ["-lc"] if name == "bleu_lc" else []
    told = sacrebleu(tmp_path, [GOOD], "-m", "bleu", "-tok", tokenize, "--force", *case)
    scored = measured(name, tokenize)
    assert scored["score"] == round(told["score"], 2)
    assert scored["signature"] == told["signature"]


def test_control_the_metrics_tell_the_systems_and_each_other_apart():
    found = [
        metrics.measure(metrics.choose(NAMES, "13a", "zh"), system, REFERENCES)
        for system in (GOOD, BAD)
    ]
    good, bad = ({name: one["score"] for name, one in scores.items()} for scores in found)
    assert all(good[name] > bad[name] for name in good if name != "ter")
    assert good["ter"] < bad["ter"]
    assert len({*good.values()}) == len(good)


def test_chrf_has_an_interval_where_some_resamples_score_0():
    """Of two sentences one is right: a quarter of the resamples has the wrong one twice."""
    chosen = metrics.choose(["chrf"])
    scored = metrics.measure(chosen, ["abcdefg", "xyz"], ["abcdefg", "hijklmn"], confidence=True)
    assert scored["chrf"]["score"] == pytest.approx(scored["chrf"]["mean"], abs=10)
    assert scored["chrf"]["interval"] == 50


def test_an_interval_of_nothing_right_is_0():
    chosen = metrics.choose(["bleu"])
    scored = metrics.measure(chosen, ["x y z w"] * 3, ["a b c d"] * 3, confidence=True)["bleu"]
    assert (scored["score"], scored["mean"], scored["interval"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("language", "label"),
    [("zh", "BLEU zh"), ("zh-Hans", "BLEU zh"), ("zh_TW", "BLEU zh"), ("de", None), ("", None)],
)
def test_by_default_all_metrics_of_the_language_are_chosen(language, label):
    chosen = metrics.choose(None, "13a", language)
    expected = [name for name in metrics.METRICS if label or name != "bleu_language"]
    assert list(chosen) == expected
    if label:
        assert chosen["bleu_language"].label == label


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_tokenizer_that_is_missing_is_said_in_the_label_and_characters_are_counted(
    language, monkeypatch
):
    module = f"sacrebleu.tokenizers.tokenizer_{language}_mecab"
    __import__(module)
    monkeypatch.setattr(sys.modules[module], "MeCab", None)
    named = metrics.choose(None, "13a", language)["bleu_language"]
    assert named.label == (
        f"BLEU char ({language}-mecab needs: pip install 'sacrebleu[{language}]')"
    )
    expected = metrics.measure(metrics.choose(["bleu"], "char"), GOOD, REFERENCES)["bleu"]
    [found] = metrics.measure({"x": named}, GOOD, REFERENCES).values()
    assert found["score"] == expected["score"]
    with pytest.raises(ValueError) as raised:
        metrics.choose(["bleu"], f"{language}-mecab")
    assert str(raised.value) == (
        f"the tokenizer {language}-mecab is not installed: pip install 'sacrebleu[{language}]', "
        "or pass --tokenize=char."
    )


@pytest.mark.parametrize(
    ("names", "language", "message"),
    [
        (
            ["bleu", "blue"],
            "de",
            r"^--metrics must be names among bleu, .*, ter.*Received: blue\.$",
        ),
        ([""], "de", r"Received: \.$"),
        (["bleu_language"], "de", r"for zh, ja, ko, and the target language is de\. Leave it out"),
        (["bleu_language"], "", r"the target language is not known"),
    ],
)
def test_a_metric_that_there_is_not_is_refused(names, language, message):
    with pytest.raises(ValueError, match=message):
        metrics.choose(names, "13a", language)


def test_where_text_is_tokenized_compounds_are_split_as_they_stand():
    assert metrics.choose(["bleu_compounds"], "none")["bleu_compounds"].label.startswith(
        "BLEU none"
    )
    for tokenize in ("13a", "intl", "char"):
        named = metrics.choose(["bleu_compounds"], tokenize)["bleu_compounds"]
        assert named.label == "BLEU 13a, compounds split"
