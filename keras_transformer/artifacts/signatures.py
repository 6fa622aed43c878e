"""What a server may be asked: functions of strings (B,), by the names under which a SavedModel has
them.

Options of a request are inputs with a default, (1,) for all sentences or (B,). Out of their range
they count as its nearest end: what is served together in one batch may come from several requests,
of which none shall fail another.
"""

import tensorflow as tf

MOST_HYPOTHESES = 32
STEEPEST_PENALTY = 10.0
LONGEST = 2048
TEMPERATURES = (1e-3, 1e3)


def served(module):
    """The signatures of a `TranslationModule`.

    serving_default: text -> translation
    translate:       text, options beam_size, length_penalty, max_length (0: as exported), num_hypotheses -> translations and scores (B, n)
    nbest:           text -> translations and scores (B, n) of the exported beam, all of it
    score:           text, reference -> log_probability and tokens
    sample:          text, options temperature, seed -> translation
    align:           text, reference -> source_pieces (B, S), target_pieces (B, T), attention (B, N, h, T, S) to the source

    Of an ensemble there is no `align`; of an export that draws its translations no `translate`, and
    `nbest` gives its samples.

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
    }
    if module.options.samples:
        functions["nbest"] = tf.function(_drawn(module), input_signature=[text])
    else:
        functions |= _searched(module, text)
    if module.gives_attention:
        functions["align"] = tf.function(_align(module), input_signature=[text, reference])
    return functions


def _with_options(function, text, **defaults):
    """A function of `text` and options. What Python has as their defaults, a SavedModel has as its
    signature's.
    """
    function.__defaults__ = tuple(defaults.values())
    specifications = [
        tf.TensorSpec([None], default.dtype, name=name) for name, default in defaults.items()
    ]
    return tf.function(function, input_signature=[text, *specifications])


def _searched(module, text):
    """`translate` and `nbest`, which share one graph."""
    # Of greedy search as well: a beam of 1, of which a wider one may be asked for.
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
        # The comparison is false for what is no number.
        length_penalty = tf.where(
            length_penalty >= 0, tf.minimum(length_penalty, STEEPEST_PENALTY), 0.0
        )
        search = module.options.beam(
            beam_size=beam_size, length_penalty=length_penalty, num_hypotheses=num_hypotheses
        )

        def limits(lengths):
            return tf.where(
                max_length > 0, tf.minimum(max_length, LONGEST), module.options.limits(lengths)
            )

        return _hypotheses(module, text, *module.search(search, text, limits=limits))

    translate = _with_options(translate, text, **exported)

    def nbest(text):
        given = translate(text, **{**exported, "num_hypotheses": exported["beam_size"]})
        # A width that is known lets a server join requests: whoever asks gets as many.
        return {name: tf.reshape(output, [-1, beam.beam_size]) for name, output in given.items()}

    return {"translate": translate, "nbest": tf.function(nbest, input_signature=[text])}


def _sample(module, text):
    exported = module.options.sampling()

    def sample(text, temperature, seed):
        temperature = tf.where(temperature > 0, tf.clip_by_value(temperature, *TEMPERATURES), 1.0)
        hypotheses, _ = module.search(
            module.options.sampling(temperature=temperature, seed=seed), text
        )
        return {"translation": module.target_text(hypotheses[:, 0], text)}

    defaults = {
        "temperature": tf.constant([exported.temperature], tf.float32),
        "seed": tf.constant([exported.seed], tf.int64),
    }
    return _with_options(sample, text, **defaults)


def _drawn(module):
    def nbest(text):
        return _hypotheses(module, text, *module.search(module.options.search(), text))

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
    # JSON has no infinity: a hypothesis that there is not scores the lowest number there is.
    return {
        "translations": module.target_texts(hypotheses, text),
        "scores": tf.maximum(scores, tf.float32.min),
    }
