"""What a server may be asked: functions of strings (B,), by the names under which a SavedModel has
them.

Options of a request are inputs with a default, (1,) for all sentences or (B,). A server may join
several requests in one batch. Out-of-range options are clamped, so that one request cannot fail the
others in its batch.
"""

from typing import Any

import tensorflow as tf

from keras_transformer.decoding.next_tokens import next_tokens
from keras_transformer.inference.graphs import traced
from keras_transformer.inference.request_limits import (
    LONGEST,
    MOST_HYPOTHESES,
    STEEPEST_PENALTY,
)
from keras_transformer.inference.translation_module import TranslationModule

TEMPERATURES = (1e-3, 1e3)
NEXT_PIECES = 20


def served(module: TranslationModule) -> dict[str, Any]:
    """The signatures of a `TranslationModule`.

    Every signature takes `text`, strings (B,), and gives outputs of B rows. A module that calls its
    output "tree" gives `tree` and `trees` in place of `translation` and `translations`:

    serving_default  -> translation (B,)
    translate        options beam_size, length_penalty, max_length (0: as exported) and
                     num_hypotheses -> translations and scores (B, n)
    nbest            -> translations and scores (B, n), all of the exported beam; all samples of an
                     export that draws
    score            reference -> log_probability and tokens (B,)
    sample           options temperature and seed -> translation (B,)
    next_pieces      options prefix (pieces of the target, joined by spaces), temperature, top_k (0:
                     all) and top_p -> the 20 likeliest next pieces, their probabilities as drawn
                     with these options, and those of the model, each (B, 20)
    align            reference -> source_pieces (B, S), target_pieces (B, T), and attention to the
                     source (B, N, h, T, S)

    A model that gives no attention, such as an ensemble, has no `align`. An export that draws its
    translations has no `translate`.

    Returns:
        A dictionary of `tf.function`s.
    """
    text, reference = (
        tf.TensorSpec([None], tf.string, name=name) for name in ("text", "reference")
    )
    functions = {
        "serving_default": module.translate,
        "score": module.score,
        "sample": _sample(module, text),
        "next_pieces": _next_pieces(module, text),
    }
    if module.options.samples:
        functions["nbest"] = traced(_drawn(module), text)
    else:
        functions |= _searched(module, text)
    if module.gives_attention:
        functions["align"] = traced(_align(module), text, reference)
    return functions


def with_options(function, text, **defaults):
    """A function of `text` and options. TensorFlow takes the defaults of the Python function as
    those of the signature.
    """
    function.__defaults__ = tuple(defaults.values())
    specifications = [
        tf.TensorSpec([None], default.dtype, name=name) for name, default in defaults.items()
    ]
    return traced(function, text, *specifications)


def _searched(module, text):
    """`translate` and `nbest`, which share one graph."""
    # An export with greedy search has a beam of 1 here; a request may ask for a wider one.
    beam = module.options.beam()
    most = max(MOST_HYPOTHESES, beam.beam_size)
    exported = {
        "beam_size": tf.constant([beam.beam_size]),
        "length_penalty": tf.constant([beam.length_penalty], tf.float32),
        "max_length": tf.constant([0]),
        "num_hypotheses": tf.constant([beam.num_hypotheses]),
    }

    def translate(text, beam_size, length_penalty, max_length, num_hypotheses):
        sentences = tf.shape(text)
        beam_size = tf.clip_by_value(tf.broadcast_to(beam_size, sentences), 1, most)
        num_hypotheses = tf.clip_by_value(tf.broadcast_to(num_hypotheses, sentences), 1, beam_size)
        # The comparison is false for NaN.
        length_penalty = tf.where(
            length_penalty >= 0, tf.minimum(length_penalty, STEEPEST_PENALTY), 0.0
        )
        # Greedy search scores by log P alone.
        length_penalty = tf.where(beam_size == 1, 0.0, length_penalty)
        search = module.options.beam(
            beam_size=beam_size, length_penalty=length_penalty, num_hypotheses=num_hypotheses
        )

        def limits(lengths):
            return tf.where(
                max_length > 0, tf.minimum(max_length, LONGEST), module.options.limits(lengths)
            )

        return _hypotheses(module, text, *module.search(search, text, limits=limits))

    translate = with_options(translate, text, **exported)

    def nbest(text):
        given = translate(text, **{**exported, "num_hypotheses": exported["beam_size"]})
        # With a known width, a server can join requests in one batch: all get as many.
        return {name: tf.reshape(output, [-1, beam.beam_size]) for name, output in given.items()}

    return {"translate": translate, "nbest": traced(nbest, text)}


def _sample(module, text):
    exported = module.options.sampling()

    def sample(text, temperature, seed):
        drawing = module.options.sampling(temperature=possible_temperature(temperature), seed=seed)
        hypotheses, _ = module.search(drawing, text)
        return {module.output: module.target_text(hypotheses[:, 0], text)}

    defaults = {
        "temperature": tf.constant([exported.temperature], tf.float32),
        "seed": tf.constant([exported.seed], tf.int64),
    }
    return with_options(sample, text, **defaults)


def _next_pieces(module, text):
    def next_pieces(text, prefix, temperature, top_k, top_p):
        sentences = tf.shape(text)
        prefix = tf.broadcast_to(prefix, sentences)
        found = next_tokens(
            module.next_logits(text, prefix),
            tf.broadcast_to(possible_temperature(temperature), sentences),
            tf.broadcast_to(top_k, sentences),
            # The comparison is false for NaN.
            tf.broadcast_to(tf.where(top_p > 0, tf.minimum(top_p, 1.0), 1.0), sentences),
            NEXT_PIECES,
        )
        return {
            "pieces": module.target_pieces(found.ids),
            "probabilities": found.drawn,
            "model_probabilities": found.probabilities,
        }

    defaults = {
        "prefix": tf.constant([""]),
        "temperature": tf.constant([1.0]),
        "top_k": tf.constant([0]),
        "top_p": tf.constant([1.0]),
    }
    return with_options(next_pieces, text, **defaults)


def possible_temperature(temperature):
    """Within `TEMPERATURES`; 1 for what is no temperature."""
    return tf.where(temperature > 0, tf.clip_by_value(temperature, *TEMPERATURES), 1.0)


def _drawn(module):
    def nbest(text):
        return _hypotheses(module, text, *module.search(module.options.search_for_all(), text))

    return nbest


def _align(module):
    def align(text, reference):
        given = module.attention(text, reference)
        return {
            "source_pieces": given["source_pieces"],
            "target_pieces": given["target_pieces"],
            "attention": given["cross"],
        }

    return align


def _hypotheses(module, text, hypotheses, scores):
    # JSON has no infinity: where a hypothesis is missing, the score is the lowest float32.
    return {
        f"{module.output}s": module.target_texts(hypotheses, text),
        "scores": tf.maximum(scores, tf.float32.min),
    }
