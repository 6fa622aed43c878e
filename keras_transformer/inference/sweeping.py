"""The graph that translates by several length penalties at once (Vaswani et al. 2017, section 6.1).

It is no function of `TranslationModule`, which an export would save.
"""

import tensorflow as tf

from keras_transformer.inference.text_module import traced
from keras_transformer.inference.translation_module import TranslationModule


def sweep_of(module: TranslationModule) -> tf.types.experimental.PolymorphicFunction:
    """Make a graph for all beam sizes and penalties.

    Returns:
        A function of strings (B,), a beam size (1,) and A length penalties, which gives strings
        (B, A).
    """

    def sweep(text, beam_size, length_penalties):
        search = module.options.sweep(beam_size, length_penalties)
        return module.target_texts(module.search(search, text)[0], text)

    return traced(
        sweep,
        tf.TensorSpec([None], tf.string, name="text"),
        tf.TensorSpec([1], tf.int32, name="beam_size"),
        tf.TensorSpec([None], tf.float32, name="length_penalties"),
    )
