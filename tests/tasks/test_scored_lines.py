"""Lines that no search takes are told before training."""

import types

import pytest

from keras_transformer.tasks.text_task import refuse_long_lines
from pipelines.corpora import ParallelText
from pipelines.vocabularies import vocabulary

LONG = "ab " * 1100


@pytest.fixture(scope="module")
def pieces():
    return vocabulary.learn(["a b"], 264)


def corpus(valid, test):
    splits = {"valid": valid, "test": test}
    return types.SimpleNamespace(
        **{name: ParallelText(lines, lines) for name, lines in splits.items()}
    )


def test_the_split_and_the_line_are_named(pieces):
    with pytest.raises(ValueError, match=r"^the test split, text 2 has .* Split it, or leave"):
        refuse_long_lines(corpus(["a"], ["a", LONG]), pieces, 1)
    with pytest.raises(ValueError, match=r"^the validation split, text 1 has"):
        refuse_long_lines(corpus([LONG], ["a"]), pieces, 1)
    # The control: what is not translated may be long.
    refuse_long_lines(corpus(["a", LONG], ["b"]), pieces, 1)
