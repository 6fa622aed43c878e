"""A tagger reads texts as in training."""

import numpy as np
import pytest
import tensorflow as tf
from eager import eagerly

from keras_transformer.models import Hyperparameters, TokenClassifier
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.labelling.module import LABELS_FILE, TagModule, names_of
from pipelines.batches import labelled_texts
from pipelines.batches.batching import evaluation_batches
from pipelines.vocabularies import vocabulary

KNOWN = [f"B-{letter}" for letter in "abcdefgh"]
TEXTS = ["turn <mask> on the lamp", "turn on the lamp", "<mask> <mask> the lamp now"]


@pytest.fixture(scope="module")
def pieces():
    return vocabulary.learn(["turn on the lamp", "what is it now"] * 3, 290, [vocabulary.MASK])


@pytest.fixture(scope="module")
def model(pieces):
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "positions": "learned"}
    hyperparameters = Hyperparameters(vocabulary_size=pieces.size, max_positions=20, **sizes)
    classifier = TokenClassifier(hyperparameters, len(KNOWN))
    random = np.random.default_rng(1)
    # Norms and biases stay as they are, so that other words have other tags.
    for weights in classifier.weights:
        if len(weights.shape) > 1:
            weights.assign(random.normal(0, 1, weights.shape))
    return classifier


def test_a_damaged_file_of_labels_is_named(tmp_path):
    (tmp_path / LABELS_FILE).write_text("[")
    with pytest.raises(ValueError, match=r"labels\.json is damaged: .* They stand in model\.json"):
        names_of(RunFolder(tmp_path))


def tags_of(module, texts):
    with eagerly():
        outputs = module.tag(tf.constant(texts))
    return [[tag.decode() for tag in row if tag] for row in outputs["tags"].numpy()]


def tags_in_training(model, pieces, texts, max_length):
    """The tags of the words of texts that a training reads, by its batches, in any order."""
    tags = ["B-a " * len(text.split()) for text in texts]
    examples = labelled_texts.tagged_examples(texts, tags, KNOWN, pieces, max_length, "the text")
    for inputs, _, weights in evaluation_batches(examples, 1000):
        best = np.argmax(model(inputs), axis=-1)
        for row, is_first in zip(best, weights.numpy(), strict=True):
            yield [KNOWN[number] for number in row[is_first > 0]]


def test_words_behind_a_mask_have_their_own_tags(model, pieces):
    """The space before a mask is dropped where hidden words are guessed, but not here."""
    rows = tags_of(TagModule(model, pieces, KNOWN), TEXTS)
    assert sorted(rows) == sorted(tags_in_training(model, pieces, TEXTS, 50))
    assert list(map(len, rows)) == [5, 4, 5]
    assert len({tag for row in rows for tag in row}) > 2


def test_a_long_text_is_cut_as_in_training(model, pieces):
    text = "the " * 24
    module = TagModule(model, pieces, KNOWN)
    [row] = tags_of(module, [text])
    # The token for the beginning takes one place.
    [expected] = tags_in_training(model, pieces, [text], module.longest - 1)
    assert row == expected + ["O"] * (24 - len(expected))
    assert 6 < len(expected) < 24
    # The control: cut one token earlier, the text has other tags.
    assert [*tags_in_training(model, pieces, [text], module.longest - 2)] != [expected]
