"""Raw text to words as the Penn Treebank has them."""

import sys

import pytest

from pipelines.trees.penn_words import split_words


def test_contractions_punctuation_and_quotes_are_words():
    """As https://catalog.ldc.upenn.edu/docs/LDC99T42/tokenization.html describes them."""
    pytest.importorskip("nltk")
    lines = ["They'll save and invest more.", 'He said: "I can\'t (yet)."', "", "5.5 mg/ml"]
    assert split_words(lines) == [
        "They 'll save and invest more .",
        "He said : `` I ca n't ( yet ) . ''",
        "",
        "5.5 mg/ml",
    ]


def test_without_nltk_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    with pytest.raises(ValueError, match=r"^--raw_text needs nltk.*pip install '.*\[parsing\]'"):
        split_words(["a"])
