"""Encoder-only models of text (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding"), made of the encoder of figure 1 (Vaswani et al. 2017):
without a head, with one that predicts masked pieces, and with those that give labels.
"""

import keras

from keras_transformer.layers import (
    Dropout,
    Encoder,
    FirstState,
    MeanState,
    PieceBias,
    PiecePrediction,
    SegmentEmbedding,
    padding_mask,
)
from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.prototypes import check_sizes
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import OF_TWO_STACKS, Hyperparameters
from keras_transformer.models.sized_model import (
    SizedModel,
    embeddings,
    encoding,
    heads,
    projection,
    stack_arguments,
)
from keras_transformer.models.variants import TIES

SEGMENTS = 2
# The layers below the head, which a model of one task passes on to a model of another.
BODY = ("embedding", "segment_embedding", "encoder")
# How a text's states become one vector, by name. The first is BERT's.
POOLINGS = {"first": FirstState, "mean": MeanState}


class TextEncoder(SizedModel):
    """Base class of the models of text: a state for each token, which a head reads.

    Call arguments:
        tokens: ids, (B, T), padded with PAD. The first is the mark of the beginning.
        segments: 0 for tokens of a first sentence, 1 for those of a second, (B, T).
    """

    kind = "An encoder-only Transformer (Devlin et al. 2019, arXiv 1810.04805)"
    unused = (*OF_TWO_STACKS, "output_bias")

    def assembled(self, hyperparameters, policy, **more):
        hp = hyperparameters
        embedding = embeddings(hp, policy, encoding(hp))
        segment_embedding = SegmentEmbedding(
            SEGMENTS, hp.dropout, hp.norm_epsilon, dtype=policy, name="segment_embedding"
        )
        of_encoder, _, _ = heads(hp)
        encoder = Encoder(**stack_arguments(hp), heads=of_encoder, dtype=policy, name="encoder")
        parts = dict(zip(BODY, (embedding, segment_embedding, encoder), strict=True))
        return self.headed(hp, policy, parts, **more)

    def headed(self, hp: Hyperparameters, policy: keras.DTypePolicy, parts: dict):
        """Return what `assembled` returns, from the layers of `BODY`."""
        raise NotImplementedError

    def states(self, tokens: Tensor, segments: Tensor) -> Tensor:
        """Return the last layer's states, (B, T, d_model), in the dtype of the computation."""
        return _states(vars(self), tokens, segments)

    def attention_weights(self, tokens: Tensor, segments: Tensor) -> dict[str, Tensor]:
        """Return attention weights: {"encoder": (B, N, h, T, T)}, whose rows sum to 1."""
        x = self.segment_embedding(self.embedding(tokens), segments)
        _, weights = self.encoder.with_attention(x, padding_mask(tokens))
        return {"encoder": weights}


def _inputs(*names):
    return tuple(keras.Input((None,), dtype="int32", name=name) for name in names)


def _states(parts, tokens, segments):
    x = parts["segment_embedding"](parts["embedding"](tokens), segments)
    return parts["encoder"](x, attention_mask=padding_mask(tokens))


@keras.saving.register_keras_serializable("keras_transformer")
class BareTextEncoder(TextEncoder):
    """A state for each token of a text, for sentence vectors or for a head of your own.

    Returns:
        States in float32, (B, T, d_model).
    """

    def headed(self, hp, policy, parts):
        inputs = _inputs("tokens", "segments")
        return inputs, _states(parts, *inputs), parts


@keras.saving.register_keras_serializable("keras_transformer")
class MaskedLanguageModel(TextEncoder):
    """Logits of the pieces that may stand at some places of a text.

        P(piece at t | text) = softmax(LayerNorm(activation(x_t W + b)) E^T + c),  x = Encoder(text)

    In a small model, logits of V pieces cost as much as two layers. So they are computed at
    `places` alone: in training, at one token in seven.

    Call arguments:
        tokens, segments: as in `TextEncoder`.
        places: the positions of the tokens to guess, (B, M), each from 0 to T - 1.

    Returns:
        Logits in float32, (B, M, V).

    Example:
        model = MaskedLanguageModel(vocabulary_size=8000, positions="learned", activation="gelu")
        logits = model((tokens, segments, places))
    """

    def headed(self, hp, policy, parts):
        own_table = "projection" in TIES[hp.tie_embeddings]
        onto_pieces = projection(hp, policy) if own_table else parts["embedding"]
        prediction = PiecePrediction(
            stack_arguments(hp)["activation"], hp.norm_epsilon, dtype=policy, name="prediction"
        )
        bias = PieceBias(dtype=policy, name="output_bias")
        tokens, segments, places = _inputs("tokens", "segments", "places")
        x = prediction(_states(parts, tokens, segments), places)
        return (tokens, segments, places), bias(onto_pieces(x, reverse=True)), parts


class Labeller(TextEncoder):
    """Base class of the models that give labels: a linear map to C labels.

    Args:
        labels: C.
        **more: further arguments of `read`.
    """

    def __init__(
        self,
        hyperparameters: Hyperparameters,
        labels: int,
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
        **more,
    ):
        check_sizes(labels=labels)
        labels = int(labels)
        self._assemble(hyperparameters, dtype, name, labels=labels, **more)
        self.labels = labels

    def headed(self, hp, policy, parts, labels, **more):
        inputs = _inputs("tokens", "segments")
        x = self.read(_states(parts, *inputs), inputs[0], policy, **more)
        x = Dropout(hp.dropout, dtype=policy, name="label_dropout")(x)
        return inputs, Dense(labels, dtype=policy, name="labels")(x), parts

    def read(self, states: Tensor, tokens: Tensor, policy: keras.DTypePolicy) -> Tensor:
        """Return the vectors to label, from states (B, T, d_model) and tokens (B, T)."""
        raise NotImplementedError

    def get_config(self):
        sizes = self.hyperparameters.as_dict()
        own = {name: value for name, value in super().get_config().items() if name not in sizes}
        return {**own, "labels": self.labels, "hyperparameters": sizes}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        hyperparameters = Hyperparameters(**config["hyperparameters"])
        return super().from_config({**config, "hyperparameters": hyperparameters})


@keras.saving.register_keras_serializable("keras_transformer")
class TextClassifier(Labeller):
    """A label for a text, from the state of its first token.

        P(label | text) = softmax(tanh(p W + b) V + c),    p = Pooling(Encoder(text))

    Args:
        pooling: "first", as in BERT, or "mean": see `layers.FirstState` and `layers.MeanState`.

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
        super().__init__(hyperparameters, labels, dtype, name, pooling=pooling)
        self.pooling = pooling

    def read(self, states, tokens, policy, pooling):
        if pooling not in POOLINGS:
            names = " or ".join(POOLINGS)
            raise ValueError(f"`pooling` must be {names}. Received: pooling={pooling!r}.")
        pooled = POOLINGS[pooling](dtype=policy, name="pooling")(states, tokens)
        return Dense(states.shape[-1], "tanh", dtype=policy, name="pooler")(pooled)

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling}


@keras.saving.register_keras_serializable("keras_transformer")
class TokenClassifier(Labeller):
    """A label for each token of a text, from its state: names, or spans that answer a question.

        P(label at t | text) = softmax(x_t V + c),    x = Encoder(text)

    Returns:
        Logits in float32, (B, T, C).
    """

    def read(self, states, tokens, policy):
        return states
