"""Which references look tokenized: typed lines of each kind."""

import pytest
from evaluation.systems import REFERENCES

from keras_transformer.evaluation import bleu

TOKENIZED = [
    "a man in an orange hat starring at something .",
    "two young , white males are outside",
    "the man 's hat",
    "der rich @-@ text",
    "the man &apos;s hat",
    "&quot; hello &quot;",
    "ein Kin@@ derwagen",
    "rich ##AT##-##AT## text",
]
PLAIN = [
    "A man in an orange hat, starring at something.",
    "The man's hat costs 3.50, he said: “Oh!”",
    "Est-ce vrai ? Oui ; non : si !",
    "Mail an a@b.de und @alice",
    "Set .NET or .5 as the value ...",
    ". is a dot",
    "R&D; AT&T",
    "",
]


def test_traces_of_a_tokenizer_are_found_and_nothing_else():
    assert bleu.tokenized_lines(TOKENIZED) == TOKENIZED
    assert bleu.tokenized_lines(PLAIN) == []


def test_tokenized_references_are_told_with_an_example_and_what_to_do():
    told = bleu.warning([TOKENIZED[0]] * 3 + [PLAIN[0]], "13a")
    assert told.startswith(f"75% of the references look tokenized, such as {TOKENIZED[0]!r}.")
    assert told.endswith("Pass --tokenize=none for the latter.")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("references", "tokenize"),
    [(REFERENCES, "13a"), (TOKENIZED, "none"), ([TOKENIZED[0], *PLAIN * 2], "13a")],
)
def test_control_nothing_is_told_of_other_references(references, tokenize):
    assert bleu.warning(references, tokenize) is None
