"""Texts with labels: batches, and labels that training has not seen."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import labelled_texts
from pipelines.batches.batching import evaluation_batches
from pipelines.corpora.parallel_text import Origin, ParallelText
from pipelines.vocabularies import vocabulary

TEXTS = ["turn on the lamp", "what is the time", "turn off the lamp in the kitchen"]


def test_a_batch_has_each_text_between_its_marks_beside_its_label():
    learned = vocabulary.learn(TEXTS, 300, tags=[vocabulary.MASK])
    ids = labelled_texts.tokenized(TEXTS, learned, 6)
    assert ids.lengths.max() == 6
    examples = labelled_texts.examples(ids, np.array([1, 0, 1]), learned)
    found = {}
    for (tokens, segments), labels, weights in evaluation_batches(examples, 50):
        assert not segments.numpy().any()
        assert weights.numpy().tolist() == [1.0] * len(labels)
        for row, label in zip(tokens.numpy(), labels.numpy(), strict=True):
            found[tuple(row[row != 0].tolist())] = int(label)
    marks = learned.marks
    plain = learned.tokenize(tf.constant(TEXTS)).to_list()
    expected = [(marks.first, *text[:-1][:5], marks.last) for text in plain]
    assert found == dict(zip(expected, (1, 0, 1), strict=True))


def test_a_label_that_training_has_not_is_told():
    place = ParallelText(TEXTS, TEXTS, (Origin("test.b", [1, 5, 6]),)).place
    place = functools.partial(place, side="")
    numbers = labelled_texts.numbers_of(["b", "a"], ["a", "b"], place)
    assert numbers.tolist() == [1, 0]
    with pytest.raises(
        ValueError,
        match=r"seen in training, where 2 are\. Received: test\.b, line 5 has 'c' and 1 more\. Add",
    ):
        labelled_texts.numbers_of(["a", "c", "d"], ["a", "b"], place)
