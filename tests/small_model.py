"""A model of a few operations, for laws of training that do not depend on layers: TensorFlow needs
seconds to make a graph of a Transformer's step.
"""

import keras

from keras_transformer.layers import Dropout


def small_model(size=20, dropout=0.0):
    """Logits (B, T, size) from the mean of the source's embeddings and each token of the target;
    id 0 is padding.
    """
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    embedding = keras.layers.Embedding(size, 8, embeddings_initializer="normal", name="embedding")
    real = keras.ops.cast(keras.ops.not_equal(source, 0), "float32")[..., None]
    count = keras.ops.sum(real, axis=1, keepdims=True)
    mean = keras.ops.sum(embedding(source) * real, axis=1, keepdims=True) / count
    hidden = Dropout(dropout, name="dropout")(mean + embedding(target))
    return keras.Model([source, target], keras.layers.Dense(size, name="logits")(hidden))
