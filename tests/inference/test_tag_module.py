"""A tagger reads its texts as it learned from them."""

import numpy as np
import pytest
import tensorflow as tf
from eager import eagerly

from keras_transformer.models import Hyperparameters, TokenClassifier
from keras_transformer.tasks.labelling.module import TagModule
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
    made = TokenClassifier(hyperparameters, len(KNOWN))
    random = np.random.default_rng(1)
    # Norms and biases stay as they are, so that other words have other tags.
    made.set_weights(
        [random.normal(0, 1, one.shape) if one.ndim > 1 else one for one in made.get_weights()]
    )
    return made


def test_words_behind_a_mask_have_their_own_tags(model, pieces):
    """The space before a mask is left out where hidden words are guessed, and not here."""
    tags = ["B-a " * len(text.split()) for text in TEXTS]
    examples = labelled_texts.tagged_examples(TEXTS, tags, KNOWN, pieces, 50, "the text")
    with eagerly():
        found = TagModule(model, pieces, KNOWN).tag(tf.constant(TEXTS))
    expected = {}
    for inputs, _, weights in evaluation_batches(examples, 1000):
        best = np.argmax(model(inputs), axis=-1)
        for row, is_first, tokens in zip(best, weights.numpy(), inputs[0].numpy(), strict=True):
            expected[tuple(tokens[tokens != 0])] = [KNOWN[n] for n in row[is_first > 0]]
    rows = [[tag.decode() for tag in row if tag] for row in found["tags"].numpy()]
    assert sorted(rows) == sorted(expected.values())
    assert list(map(len, rows)) == [5, 4, 5]
    assert len({tag for row in rows for tag in row}) > 2
