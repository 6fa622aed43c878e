"""Weights of float32 or bfloat16 to translate with: section 6.1's decoding reads all of the
decoder's weights for every token.
"""

import keras


@keras.saving.register_keras_serializable("keras_transformer")
class BFloat16Weights(keras.DTypePolicy):
    """Weights in bfloat16, half the bytes of float32; activations in float32.

    A `Stepper` multiplies its matrices in bfloat16. Sums, norms, attention and scores, and the
    whole encoder, are computed in float32.
    """

    def __init__(self, name: str = "bfloat16_weights"):
        super().__init__("float32")
        self._name = name
        self._variable_dtype = "bfloat16"


def translation_policy(precision: str) -> keras.DTypePolicy:
    """The Keras dtype policy of a model to translate with.

    Args:
        precision: "float32" or "bfloat16".

    Raises:
        ValueError: for anything else.
    """
    policies = {"float32": keras.DTypePolicy("float32"), "bfloat16": BFloat16Weights()}
    if precision not in policies:
        raise ValueError(f"`precision` must be {' or '.join(policies)}. Received: {precision!r}.")
    return policies[precision]
