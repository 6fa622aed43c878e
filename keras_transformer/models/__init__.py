"""The Transformer as one functional Keras model, what it is compared with, and the numbers that
size them (Vaswani et al. 2017, figure 1 and tables 2 and 3).
"""

from keras_transformer.models.architectures import ARCHITECTURES, chosen, described, model_of
from keras_transformer.models.bare_text_encoder import BareTextEncoder
from keras_transformer.models.bfloat16_weights import translation_policy
from keras_transformer.models.convolutional_translator import (
    ConvolutionalHyperparameters,
    ConvolutionalTranslator,
)
from keras_transformer.models.encoder_decoder import EncoderDecoder
from keras_transformer.models.ensemble import Ensemble
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.language_model import LanguageModel
from keras_transformer.models.masked_language_model import MaskedLanguageModel
from keras_transformer.models.recurrent_translator import (
    RecurrentHyperparameters,
    RecurrentTranslator,
)
from keras_transformer.models.text_classifier import TextClassifier, TokenClassifier
from keras_transformer.models.transformer import Transformer
from keras_transformer.models.vision import VisionHyperparameters, VisionTransformer

__all__ = [
    "ARCHITECTURES",
    "BareTextEncoder",
    "ConvolutionalHyperparameters",
    "ConvolutionalTranslator",
    "EncoderDecoder",
    "Ensemble",
    "Hyperparameters",
    "LanguageModel",
    "MaskedLanguageModel",
    "RecurrentHyperparameters",
    "RecurrentTranslator",
    "TextClassifier",
    "TokenClassifier",
    "Transformer",
    "VisionHyperparameters",
    "VisionTransformer",
    "chosen",
    "described",
    "model_of",
    "translation_policy",
]
