"""The Transformer as one functional Keras model, and the numbers that size it (Vaswani et al. 2017,
figure 1 and table 3).
"""

from keras_transformer.models.bfloat16_weights import translation_policy
from keras_transformer.models.ensemble import Ensemble
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.transformer import Transformer

__all__ = ["Ensemble", "Hyperparameters", "Transformer", "translation_policy"]
