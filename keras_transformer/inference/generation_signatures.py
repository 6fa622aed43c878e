"""What a server may ask a language model: functions of strings (B,), by the names under which a
SavedModel has them. The rules are those of `signatures`.
"""

from typing import Any

import tensorflow as tf

from keras_transformer.decoding.next_tokens import next_tokens
from keras_transformer.inference.generation_module import GenerationModule
from keras_transformer.inference.request_limits import LONGEST
from keras_transformer.inference.signatures import NEXT_PIECES, possible_temperature, with_options


def served(module: GenerationModule) -> dict[str, Any]:
    """The signatures of a `GenerationModule`.

    Every signature takes `text`, strings (B,), and gives outputs of B rows:

    serving_default  -> generated (B,), the prompt and what comes after it, as exported
    nbest            -> generated and scores (B, n), all that the exported search keeps
    sample           options temperature, seed, and max_length, in pieces after the prompt (0: as
                     exported) -> generated (B,)
    score            -> log_probability and tokens (B,)
    attend           -> pieces (B, T), and decoder (B, N, h, T, T): what the heads attend to
    next_pieces      options prefix (pieces after the text, joined by spaces), temperature, top_k
                     (0: all) and top_p -> the 20 likeliest next pieces, their probabilities as
                     drawn with these options, and those of the model, each (B, 20)

    Returns:
        A dictionary of `tf.function`s.
    """
    text = tf.TensorSpec([None], tf.string, name="text")
    return {
        "serving_default": module.generate,
        "nbest": _nbest(module, text),
        "sample": _sample(module, text),
        "score": module.score,
        "attend": module.attend,
        "next_pieces": _next_pieces(module, text),
    }


def _nbest(module, text):
    def nbest(text):
        hypotheses, scores = module.search(module.options.search_for_all(), text)
        # JSON has no infinity: where a hypothesis is missing, the score is the lowest float32.
        return {
            "generated": module.texts_of(hypotheses),
            "scores": tf.maximum(scores, tf.float32.min),
        }

    return with_options(nbest, text)


def _sample(module, text):
    exported = module.options.sampling()

    def sample(text, temperature, seed, max_length):
        drawing = module.options.sampling(temperature=possible_temperature(temperature), seed=seed)

        def limits(lengths):
            asked = tf.cast(lengths, tf.int32) + tf.minimum(max_length, LONGEST)
            return tf.where(max_length > 0, asked, module.options.limits(lengths))

        hypotheses, _ = module.search(drawing, text, limits)
        return {"generated": module.text_of(hypotheses[:, 0])}

    defaults = {
        "temperature": tf.constant([exported.temperature], tf.float32),
        "seed": tf.constant([exported.seed], tf.int64),
        "max_length": tf.constant([0]),
    }
    return with_options(sample, text, **defaults)


def _next_pieces(module, text):
    def next_pieces(text, prefix, temperature, top_k, top_p):
        texts = tf.shape(text)
        found = next_tokens(
            module.next_logits(text, tf.broadcast_to(prefix, texts)),
            tf.broadcast_to(possible_temperature(temperature), texts),
            tf.broadcast_to(top_k, texts),
            # The comparison is false for NaN.
            tf.broadcast_to(tf.where(top_p > 0, tf.minimum(top_p, 1.0), 1.0), texts),
            NEXT_PIECES,
        )
        return {
            "pieces": module.pieces_of(found.ids),
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
