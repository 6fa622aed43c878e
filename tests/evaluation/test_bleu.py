"""BLEU and chrF against sacrebleu, called directly."""

import math
import re

import pytest
import sacrebleu
from evaluation.systems import GOOD, REFERENCES, damaged

from keras_transformer.evaluation import bleu
from keras_transformer.evaluation.metrics import CompoundBLEU, split_compounds


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_sacrebleus_of_the_corpus(seed):
    hypotheses = damaged(seed, kept=0.8)
    scores = bleu.score(hypotheses, REFERENCES)
    assert scores["bleu"] == round(sacrebleu.corpus_bleu(hypotheses, [REFERENCES]).score, 2)
    assert scores["chrf"] == round(sacrebleu.corpus_chrf(hypotheses, [REFERENCES]).score, 2)
    assert 0 < scores["bleu"] < 100
    assert scores["sentences"] == len(REFERENCES)


def test_a_translation_worked_out_by_hand():
    """Of 7, 6, 5, 4 n-grams 6, 4, 3, 2 are found; as long as the reference."""
    expected = 100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25
    assert bleu.score(["a b c d e x g"], ["a b c d e f g"])["bleu"] == round(expected, 2)


def test_the_signatures_tell_how_it_was_counted():
    scores = bleu.score(REFERENCES, REFERENCES)
    parts = scores["bleu_signature"].split("|")
    expected = {"nrefs:1", "case:mixed", "tok:13a", "smooth:exp"}
    assert expected | {f"version:{sacrebleu.__version__}"} <= set(parts)
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


# The paper's BLEU: its rule of compounds by cases worked out by hand, its score by hand, and by
# sacrebleu of text that is split beforehand.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("rich-text-format", "rich ##AT##-##AT## text ##AT##-##AT## format"),
        # The first match takes b along, so that the second hyphen has nothing before it.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("a-bc-d", "a ##AT##-##AT## bc ##AT##-##AT## d"),
        # Only a hyphen between two characters is one inside a word.
        ("Hin - und Rückfahrt", "Hin - und Rückfahrt"),
        ("Vor- und Nachteile", "Vor- und Nachteile"),
        ("-40 Grad", "-40 Grad"),
        # The two hyphens of a dash: the first has a character on both sides, the second hyphen.
        ("a--b", "a ##AT##-##AT## -b"),
        ("Überraschungs-Ei", "Überraschungs ##AT##-##AT## Ei"),
        ("", ""),
    ],
)
def test_a_hyphen_inside_a_word_gets_room(text, expected):
    assert split_compounds(text) == expected


def test_bleu_of_split_compounds_worked_out_by_hand():
    """Split, "das rich-text format gut" is 6 tokens, of which the last differs: 5 of 6, 4 of 5, 3
    of 4 and 2 of 3 n-grams are found. Whole, it is 4 tokens: 3 of 4, 2 of 3, 1 of 2, 0 of 1.
    """
    translation = "das rich-text format gut"
    reference = "das rich-text format schön"
    split = CompoundBLEU("none").corpus_score([translation], [[reference]]).score
    assert split == pytest.approx(100 * math.prod([5 / 6, 4 / 5, 3 / 4, 2 / 3]) ** 0.25)
    whole = sacrebleu.BLEU(tokenize="none", smooth_method="none")
    assert whole.corpus_score([translation], [[reference]]).score == 0


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_it_is_sacrebleus_bleu_of_text_that_is_tokenized_and_split_beforehand(tokenize):
    tokenizer = sacrebleu.BLEU(tokenize=tokenize).tokenizer
    ready = [
        [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokenizer(line)) for line in lines]
        for lines in (GOOD, REFERENCES)
    ]
    expected = sacrebleu.corpus_bleu(
        ready[0], [ready[1]], tokenize="none", smooth_method="none", force=True
    )
    metric = CompoundBLEU(tokenize)
    assert metric.corpus_score(GOOD, [REFERENCES]).score == expected.score
    assert f"tok:{tokenize}+compounds|smooth:none" in str(metric.get_signature())
    whole = sacrebleu.corpus_bleu(GOOD, [REFERENCES], tokenize=tokenize, smooth_method="none")
    assert expected.score > whole.score


def test_it_is_not_smoothed():
    assert CompoundBLEU().corpus_score(["a b c x"], [["a b c d"]]).score == 0
    assert sacrebleu.BLEU().corpus_score(["a b c x"], [["a b c d"]]).score > 0


# Which references look tokenized: typed lines of each kind.
LOOKS_TOKENIZED = [
    *("a man in an orange hat starring at something .", "two young , white males are outside"),
    *("the man 's hat", "der rich @-@ text", "the man &apos;s hat", "&quot; hello &quot;"),
    *("ein Kin@@ derwagen", "rich ##AT##-##AT## text"),
]
PLAIN = [
    *("A man in an orange hat, starring at something.", "The man's hat costs 3.50, he said: “Oh!”"),
    *("Est-ce vrai ? Oui ; non : si !", "Mail an a@b.de und @alice"),
    *("Set .NET or .5 as the value ...", ". is a dot", "R&D; AT&T", ""),
]


def test_traces_of_a_tokenizer_are_found_and_nothing_else():
    assert bleu.tokenized_lines(LOOKS_TOKENIZED) == LOOKS_TOKENIZED
    assert bleu.tokenized_lines(PLAIN) == []


def test_tokenized_references_are_told_with_an_example_and_what_to_do():
    told = bleu.warning([LOOKS_TOKENIZED[0]] * 3 + [PLAIN[0]], "13a")
    assert told.startswith(f"75% of the references look tokenized, such as {LOOKS_TOKENIZED[0]!r}.")
    assert told.endswith("Pass --tokenize=none for the latter.")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("references", "tokenize"),
    [(REFERENCES, "13a"), (LOOKS_TOKENIZED, "none"), ([LOOKS_TOKENIZED[0], *PLAIN * 2], "13a")],
)
def test_control_nothing_is_told_of_other_references(references, tokenize):
    assert bleu.warning(references, tokenize) is None
