"""Decoding a real Transformer with its cache against computing every prefix anew (section 6.1).

tests/laws/test_models.py checks that the state of each variant gives what whole sequences give,
tests/layers/attention_variants/test_variants_of_attention.py where that state grows.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf
from oracles import enumeration
from oracles.enumeration import EOS, PAD

from keras_transformer.decoding import BeamSearch, GreedySearch
from keras_transformer.models import Transformer

SENTENCES, EXTRA_LENGTH, VOCABULARY_SIZE = 40, 8, 40
GREEDY, BEAM = GreedySearch(), BeamSearch(4, 0.6)


@functools.cache
def model():
    """A model whose random weights give varied translations, and logits so far apart (6e-5 and
    more) that rounding decides nothing.
    """
    sizes = {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 4, "d_k": 3, "d_v": 5}
    model = Transformer(vocabulary_size=VOCABULARY_SIZE, **sizes)
    generator = np.random.default_rng(13)
    for weight in sorted(model.weights, key=lambda weight: weight.path):
        if len(weight.shape) == 2:
            weight.assign(generator.normal(size=weight.shape) / 4)
    model.decoder.layers[-1].feed_forward_norm.norm.gamma.assign([-6.0] * 16)
    return model


@functools.cache
def sources():
    generator = np.random.default_rng(0)
    words = [
        generator.integers(EOS + 1, VOCABULARY_SIZE, generator.integers(1, 9)).tolist()
        for _ in range(SENTENCES)
    ]
    return [[*sentence, EOS] for sentence in words]


@functools.cache
def translate_with(search):
    """Return a function from sources to translations, by the product's search, cache and graph."""
    transformer = model()

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)],
        autograph=False,
    )
    def decode(source, limits):
        return search(transformer.stepper(), transformer.encode(source), limits)[0][:, 0]

    def translate(sentences):
        ids = decode(
            tf.ragged.constant(sentences, tf.int32).to_tensor(PAD),
            tf.constant([len(s) + EXTRA_LENGTH for s in sentences]),
        )
        return [tuple(row[row != PAD].tolist()) for row in ids.numpy()]

    return translate


@functools.cache
def last_log_probabilities():
    """Return a function from sources and prefixes to log P of the next token."""
    transformer = model()

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2, autograph=False)
    def log_probabilities(source, target):
        return tf.nn.log_softmax(transformer((source, target), training=False)[:, -1])

    return log_probabilities


def translate_anew(sentences, beam_size, alpha):
    """Translate one sentence at a time by `model((source, target))` on whole prefixes."""

    def translate(source):
        def log_probabilities(prefixes):
            target = np.array([(enumeration.BOS, *ids) for ids in prefixes])
            return last_log_probabilities()(np.tile(source, (len(prefixes), 1)), target).numpy()

        [(ids, _)] = enumeration.beam_search(
            log_probabilities, len(source) + EXTRA_LENGTH, beam_size, alpha
        )
        return ids

    return [translate(source) for source in sentences]


@pytest.mark.parametrize("search", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_the_cache_changes_no_token(search):
    expected = translate_anew(sources(), search.beam_size, getattr(search, "length_penalty", 0.0))
    assert translate_with(search)(sources()) == expected
    assert len(set(expected)) > SENTENCES / 2, "translations too much alike to tell anything"
    ended = sum(
        len(ids) < len(source) + EXTRA_LENGTH
        for ids, source in zip(expected, sources(), strict=True)
    )
    assert SENTENCES / 10 < ended < SENTENCES, "some should end by themselves, some at their limit"


def test_control_positions_that_are_off_by_one_change_tokens():
    class LateStepper:
        def __init__(self, stepper):
            self.stepper, self.start, self.growing = stepper, stepper.start, stepper.growing

        def __call__(self, ids, position, state, source):
            return self.stepper(ids, position + 1, state, source)

    sentences = sorted(sources(), key=len)[:8]
    limits = [len(sentence) + EXTRA_LENGTH for sentence in sentences]
    encoded = model().encode(tf.ragged.constant(sentences, tf.int32).to_tensor(PAD))
    translations = {}
    for name, stepper in (("right", model().stepper()), ("late", LateStepper(model().stepper()))):
        ids, _ = BEAM(stepper, encoded, tf.constant(limits))
        translations[name] = [tuple(row[row != PAD].tolist()) for row in ids[:, 0].numpy()]
    assert translations["right"] == translate_with(BEAM)(sentences)
    assert translations["late"] != translations["right"]
