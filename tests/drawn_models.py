"""Fixtures of rooms that translate: a small vocabulary, and a model with random weights."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import LanguageModel, Transformer
from keras_transformer.saved_models.served_module import ServedText
from pipelines import corpora, vocabularies

PIECES = 300
SIZES = {"vocabulary_size": PIECES, "num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}


def learned(size, **options):
    """A vocabulary of the letters that both languages of a made-up corpus have."""
    text = corpora.load("reverse", source_language="a", target_language="b").train
    return vocabularies.learn(text.sources, text.targets, "joint", size, **options)


@pytest.fixture(scope="session")
def pieces():
    return learned(PIECES)


@pytest.fixture(scope="module")
def model():
    return random_model()


def random_model(**arguments):
    """A translator with random weights: no gain is 1, no bias is 0."""
    model = Transformer(**SIZES | arguments)
    # Not by Keras' seed: TensorFlow forgets the resources of ops, tokenizers among them, when it is
    # seeded.
    random = np.random.default_rng(1)
    model.set_weights(
        [random.normal(np.all(weight == 1), 0.3, weight.shape) for weight in model.get_weights()]
    )
    return model


def random_language_model(positions="rotary", **more):
    """A language model with random weights."""
    model = LanguageModel(**SIZES, norm="pre", positions=positions, **more)
    random = np.random.default_rng(1)
    model.set_weights([random.normal(weight, 0.3) for weight in model.get_weights()])
    return model


class Some(ServedText):
    """Exports some of a translator's functions: tracing each takes seconds."""

    def __init__(self, module, *names):
        tf.Module.__init__(self)
        tokenizers = ("source_tokenizer", "target_tokenizer")
        for name in ("vocabulary", "options", "weights", "tables", *tokenizers):
            setattr(self, name, getattr(module, name))
        self.exported = {name: module.functions()[name] for name in names}

    def functions(self):
        return dict(self.exported)


def assert_alike(actual, expected, atol=1e-4):
    """The same hypotheses of each line, and their scores."""
    for hypotheses, references in zip(actual, expected, strict=True):
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            assert (hypothesis.text, hypothesis.pieces) == (reference.text, reference.pieces)
            assert hypothesis.score == pytest.approx(reference.score, abs=atol)
            steps = (hypothesis.log_probabilities, reference.log_probabilities)
            np.testing.assert_allclose(*steps, atol=atol)
