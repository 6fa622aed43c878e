"""BLEU and chrF against sacrebleu, called directly."""

import random

import pytest
import sacrebleu

from keras_transformer.evaluation import bleu

REFERENCES = [
    "Der Hund läuft schnell über die Straße.",
    "Schalte das Licht in der Küche aus!",
    "Zwei Männer stehen vor einem Haus.",
    "Das ist, wie man sagt, ein guter Tag.",
]


def damaged(seed):
    """The references with some words dropped or swapped."""
    generator = random.Random(seed)
    return [
        " ".join(word for word in line.split() if generator.random() < 0.8) for line in REFERENCES
    ]


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_sacrebleus_of_the_corpus(seed):
    hypotheses = damaged(seed)
    scores = bleu.score(hypotheses, REFERENCES)
    assert scores["bleu"] == round(sacrebleu.corpus_bleu(hypotheses, [REFERENCES]).score, 2)
    assert scores["chrf"] == round(sacrebleu.corpus_chrf(hypotheses, [REFERENCES]).score, 2)
    assert 0 < scores["bleu"] < 100
    assert scores["sentences"] == len(REFERENCES)


def test_a_translation_worked_out_by_hand():
    """Of 7, 6, 5, 4 n-grams 6, 4, 3, 2 are found; as long as the reference."""
    expected = 100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25
    assert bleu.score(["a b c d e x g"], ["a b c d e f g"])["bleu"] == round(expected, 2)


def test_the_reference_itself_scores_100():
    scores = bleu.score(REFERENCES, REFERENCES)
    assert (scores["bleu"], scores["chrf"]) == (100.0, 100.0)


def test_no_word_in_common_scores_next_to_nothing_and_an_empty_translation_nothing():
    assert bleu.score(["qqq www eee rrr ttt"] * 4, REFERENCES)["bleu"] < 5
    assert bleu.score([""] * 4, REFERENCES)["bleu"] == 0.0


def test_case_counts():
    lower = [line.lower() for line in REFERENCES]
    assert bleu.score(lower, REFERENCES)["bleu"] < 100


def test_the_signatures_tell_how_it_was_counted():
    scores = bleu.score(REFERENCES, REFERENCES)
    parts = scores["bleu_signature"].split("|")
    assert {
        "nrefs:1",
        "case:mixed",
        "tok:13a",
        "smooth:exp",
        f"version:{sacrebleu.__version__}",
    } <= set(parts)
    assert {"nrefs:1", "case:mixed", "nc:6", "nw:0"} <= set(scores["chrf_signature"].split("|"))


@pytest.mark.parametrize(
    ("hypotheses", "references"), [(["a"], ["a", "b"]), (["a", "b"], ["a"]), ([], []), (["a"], [])]
)
def test_as_many_references_as_translations_are_needed_and_at_least_one(hypotheses, references):
    with pytest.raises(ValueError, match=rf"Received: {len(hypotheses)} and {len(references)}\.$"):
        bleu.score(hypotheses, references)


TOKENIZED = ["Ein Hund läuft .", "Das , was man so hört ?"]


def test_tokenized_text_is_counted_as_it_stands():
    """13a splits at commas once more."""
    found = ["a,b c,d läuft e,f .", "zwei Hunde laufen über das Gras ."]
    truth = ["a,b c,d sitzt e,f .", "zwei Hunde laufen auf dem Gras ."]
    scores = bleu.score(found, truth, "none")
    assert scores["bleu"] == round(sacrebleu.corpus_bleu(found, [truth], tokenize="none").score, 2)
    assert scores["bleu"] != bleu.score(found, truth)["bleu"]
    assert "tok:none" in scores["bleu_signature"]


def test_references_that_look_tokenized_are_told_unless_the_tokenizer_is_none():
    assert "--tokenize=none" in bleu.doubt(TOKENIZED, "13a")
    assert bleu.doubt(TOKENIZED, "none") is None
    assert bleu.doubt(REFERENCES, "13a") is None


def test_a_tokenizer_that_is_not_installed_is_refused_before_training(monkeypatch):
    def missing(**arguments):
        raise RuntimeError("no mecab")

    monkeypatch.setattr(sacrebleu, "BLEU", missing)
    with pytest.raises(ValueError, match=r"^the tokenizer ja-mecab is not installed"):
        bleu.doubt(REFERENCES, "ja-mecab")
