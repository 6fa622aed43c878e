"""How sentences are shared out to batches."""

import types

import pytest

from keras_transformer.inference.batches import checked_lengths
from keras_transformer.inference.perplexity import in_words, rounded_perplexity
from keras_transformer.inference.translator import Translator


def letters(lines):
    return [len(line) for line in lines]


def test_pairs_are_batched_by_their_longer_side():
    translator = Translator.__new__(Translator)
    translator._model = types.SimpleNamespace(lengths=letters, target_lengths=letters)
    seen = []

    def ask(lines, targets):
        seen.append(targets)
        return lines

    assert translator._in_batches(ask, (10,), [*"abcd"], ["a", "a", "a" * 10, "a"]) == [*"abcd"]
    assert seen == [["a" * 10], ["a"] * 3]


def test_a_long_line_is_called_by_its_name():
    with pytest.raises(ValueError, match=r"^line 2 has 1,025 tokens.*--split_sentences"):
        checked_lengths(letters, ["a", "a" * 1025])
    with pytest.raises(ValueError, match=r"^target 1 has 1,025 tokens.* allowed\. Shorten it\.$"):
        checked_lengths(letters, ["a" * 1025], "target {}", "Shorten it.")
    assert checked_lengths(letters, ["a" * 1024]) == [1024]
    # Of one line the number says nothing: a stream knows a better one.
    with pytest.raises(ValueError, match=r"^the line has 1,025 tokens"):
        checked_lengths(letters, ["a" * 1025])


def test_a_long_prefix_is_called_a_prefix():
    translator = Translator.__new__(Translator)
    refused = types.SimpleNamespace(lengths=letters, target_lengths=letters)
    translator._model = types.SimpleNamespace(**vars(refused), translate_in_detail=None, score=None)
    with pytest.raises(ValueError, match=r"^of the prefixes, line 2 has 1,025 tokens"):
        translator.translate(["a", "b"], ["", "a" * 1025])
    # A control.
    with pytest.raises(ValueError, match=r"^of the targets, line 2 has 1,025 tokens"):
        translator.score(["a", "b"], ["", "a" * 1025])


def test_a_perplexity_beyond_all_numbers_is_none():
    assert rounded_perplexity(1.0) == 2.718
    assert rounded_perplexity(1420.0) is None
    assert (in_words(2.718), in_words(None)) == ("2.718", "beyond all numbers")
