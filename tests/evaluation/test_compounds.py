"""The paper's BLEU: its rule of compounds by cases worked out by hand, its score by hand, and by
sacrebleu of text that is split beforehand.
"""

import math
import re

import pytest
import sacrebleu
from evaluation.systems import GOOD, REFERENCES

from keras_transformer.evaluation.metrics import CompoundBLEU, split_compounds


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
