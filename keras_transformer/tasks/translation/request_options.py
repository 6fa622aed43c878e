"""Searches with options of requests (Vaswani et al. 2017, section 6.1)."""

import functools

import tensorflow as tf

from keras_transformer.decoding.beam_search import FORMS
from keras_transformer.decoding.lengths import LONGEST
from keras_transformer.decoding.options import MOST_HYPOTHESES, STEEPEST_PENALTY
from keras_transformer.decoding.remembered_options import LANGUAGES
from keras_transformer.inference.model_graphs import traced
from keras_transformer.inference.text_module import TEXT, with_options


def functions_of_requests(module) -> dict:
    """Return `translate` and `nbest` of a `TranslationModule`, which share one graph."""
    # An export with greedy search has a beam of 1 here; a request may ask for a wider one.
    beam = module.options.beam()
    exported = {
        "beam_size": tf.constant([beam.beam_size]),
        "length_penalty": tf.constant([beam.length_penalty], tf.float32),
        "length_penalty_form": tf.constant([""]),
        "max_length": tf.constant([0]),
        "num_hypotheses": tf.constant([beam.num_hypotheses]),
    }
    if module.labels:
        exported |= dict.fromkeys(LANGUAGES, tf.constant([""]))
    translate = with_options(functools.partial(_translate, module), **exported)

    def nbest(text):
        outputs = translate(text, **{**exported, "num_hypotheses": exported["beam_size"]})
        # A static width lets a server join requests in one batch.
        return {name: tf.reshape(rows, [-1, beam.beam_size]) for name, rows in outputs.items()}

    return {"translate": translate, "nbest": traced(nbest, TEXT)}


def _translate(
    module,
    text,
    beam_size,
    length_penalty,
    length_penalty_form,
    max_length,
    num_hypotheses,
    **languages,
):
    sentences = tf.shape(text)
    most = max(MOST_HYPOTHESES, module.options.beam().beam_size)
    beam_size = tf.clip_by_value(tf.broadcast_to(beam_size, sentences), 1, most)
    count = tf.clip_by_value(tf.broadcast_to(num_hypotheses, sentences), 1, beam_size)
    # The comparison is false for NaN.
    penalty = tf.minimum(length_penalty, STEEPEST_PENALTY)
    penalty = tf.where(length_penalty >= 0, penalty, 0.0)
    # Greedy search scores by log P alone.
    penalty = tf.where(beam_size == 1, 0.0, penalty)
    form = tf.constant(FORMS[module.options.length_penalty_form])
    for name, c in FORMS.items():
        form = tf.where(length_penalty_form == name, c, form)
    search = module.options.beam(
        beam_size=beam_size, length_penalty=penalty, length_penalty_form=form, num_hypotheses=count
    )

    def limits(lengths):
        longest = tf.minimum(max_length, LONGEST)
        return tf.where(max_length > 0, longest, module.options.limits(lengths))

    more = {"languages": tuple(languages.values())} if languages else {}
    return module.hypotheses(*module.search_for_terms(search, text, limits=limits, **more))
