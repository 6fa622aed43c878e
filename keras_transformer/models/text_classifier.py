"""Encoder-only models that give labels (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", figure 4), out of the encoder of figure 1
(Vaswani et al. 2017).
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.layers import Dropout, FirstState, MeanState
from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.text_encoder import TextEncoder, inputs

# What is made of a text's states, by name. The first is BERT's.
POOLINGS = {"first": FirstState, "mean": MeanState}


class Labeller(keras.Model):
    """What models that give labels share: a body and a linear map to C labels.

    Args:
        hyperparameters: sizes and variants of the body.
        labels: C.
        read: what is labelled: a function of states (B, T, d_model), tokens (B, T) and a policy.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments:
        tokens: ids, (B, T), padded with PAD, the first of them a mark of the beginning.
        segments: 0 for tokens of a first sentence, 1 for those of a second, (B, T).
    """

    what = "An encoder-only Transformer (Devlin et al. 2019, arXiv 1810.04805)"

    def __init__(
        self,
        hyperparameters: Hyperparameters,
        labels: int,
        read: Callable[..., Tensor],
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
    ):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        body = TextEncoder(hyperparameters, policy)
        tokens, segments = inputs()
        x = read(body(tokens, segments), tokens, policy)
        x = Dropout(hyperparameters.dropout, dtype=policy, name="label_dropout")(x)
        logits = Dense(labels, dtype=policy, name="labels")(x)
        super().__init__((tokens, segments), ops.cast(logits, "float32"), name=name)
        self.hyperparameters = hyperparameters
        self.labels = labels
        self.body = body
        self.embedding = body.embedding

    def states(self, tokens: Tensor, segments: Tensor) -> Tensor:
        """The last layer's states, (B, T, d_model), of inputs as `call` has them."""
        return self.body(tokens, segments)

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.embedding.dtype_policy),
            "labels": self.labels,
            "hyperparameters": self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        hyperparameters = Hyperparameters(**config["hyperparameters"])
        return cls(**{**config, "hyperparameters": hyperparameters})


@keras.saving.register_keras_serializable("keras_transformer")
class TextClassifier(Labeller):
    """A label for a text, from the state of its first token.

        P(label | text) = softmax(tanh(p W + b) V + c),    p = Pooling(Encoder(text))

    Args:
        hyperparameters, labels, dtype: as in `Labeller`.
        pooling: "first", as in BERT, or "mean": see `layers.FirstState` and `layers.MeanState`.

    Call arguments as in `Labeller`.

    Returns:
        Logits in float32, (B, C).

    Example:
        hyperparameters = Hyperparameters(vocabulary_size=8000, positions="learned")
        logits = TextClassifier(hyperparameters, labels=42)((tokens, segments))
    """

    def __init__(
        self,
        hyperparameters: Hyperparameters,
        labels: int,
        pooling: str = "first",
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
    ):
        def read(states, tokens, policy):
            pooled = POOLINGS[pooling](dtype=policy, name="pooling")(states, tokens)
            width = hyperparameters.d_model
            return Dense(width, "tanh", dtype=policy, name="pooler")(pooled)

        super().__init__(hyperparameters, labels, read, dtype, name)
        self.pooling = pooling

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling}


@keras.saving.register_keras_serializable("keras_transformer")
class TokenClassifier(Labeller):
    """A label for each token of a text, from its state: names, or spans that answer a question.

        P(label at t | text) = softmax(x_t V + c),    x = Encoder(text)

    Arguments as in `Labeller`, but for `read`; call arguments too.

    Returns:
        Logits in float32, (B, T, C).
    """

    def __init__(
        self,
        hyperparameters: Hyperparameters,
        labels: int,
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
    ):
        super().__init__(hyperparameters, labels, lambda states, *_: states, dtype, name)
