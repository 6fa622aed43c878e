"""The Transformer as one functional Keras model, the models that it is compared with, and their
hyperparameters (Vaswani et al. 2017, figure 1 and tables 2 and 3).

A name is imported when it is first used: hyperparameters load neither TensorFlow nor Keras, and
the Transformer does not load the other models.
"""

from typing import Any

from keras_transformer.first_use import imported_at_first_use

_HOMES = {
    "ARCHITECTURES": "architectures",
    "BareTextEncoder": "text_encoders",
    "ConvolutionalHyperparameters": "architectures",
    "ConvolutionalTranslator": "baselines",
    "EncoderDecoder": "transformer",
    "Ensemble": "ensemble",
    "Hyperparameters": "hyperparameters",
    "LanguageModel": "language_model",
    "MaskedLanguageModel": "text_encoders",
    "RecurrentHyperparameters": "architectures",
    "RecurrentTranslator": "baselines",
    "TextClassifier": "text_encoders",
    "TokenClassifier": "text_encoders",
    "Transformer": "transformer",
    "VisionHyperparameters": "architectures",
    "VisionTransformer": "vision",
    "sizes_of_description": "architectures",
    "sizes_of_flags": "architectures",
    "translation_policy": "sized_model",
}
__all__ = [*_HOMES, "model_of"]
__getattr__, __dir__ = imported_at_first_use(__name__, _HOMES)


def model_of(hyperparameters: Any, dtype: Any = None) -> Any:
    """Make a model of any architecture. `dtype` is a Keras dtype policy; None: the global one."""
    return __getattr__(hyperparameters.model)(hyperparameters, dtype=dtype)
