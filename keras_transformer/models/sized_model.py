"""The base class of the models: it builds layers from hyperparameters and a dtype policy, and from
the layers a functional Keras model (Vaswani et al. 2017, figure 1).
"""

import re
from typing import Any

import keras
from keras import ops

from keras_transformer import layers
from keras_transformer.layers import AttentionHeads, PositionalEmbedding
from keras_transformer.layers.tensors import State, Tensor
from keras_transformer.models.hyperparameters import Hyperparameters, Sizes
from keras_transformer.models.variants import (
    ACTIVATIONS,
    ATTENTIONS,
    FEED_FORWARDS,
    NORMS,
    POSITIONS,
    RESIDUAL_INITIALIZATIONS,
    attention_and_number,
)
from pipelines.special_ids import BOS

# Hyperparameters that a stack of layers takes as they are.
COPIED = (
    *("num_layers", "num_heads", "d_model", "d_ff", "d_k", "d_v", "dropout"),
    *("activation_dropout", "attention_bias", "norm_epsilon"),
)


class SizedModel(keras.Model):
    """A functional model built from hyperparameters. A subclass defines its layers in `assembled`.

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.
        name: the model's name; by default that of its class.

    Attributes:
        sizes: the class of the hyperparameters.
        kind: the architecture in words, for readers of an export.
        unused: names of hyperparameters that must have their defaults: they decide nothing here.
        embedding: the first layer.
    """

    sizes: type[Sizes] = Hyperparameters
    kind: str
    unused: tuple[str, ...] = ()

    def __init__(
        self,
        hyperparameters: Sizes | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
        **sizes,
    ):
        self._assemble(hyperparameters, dtype, name, sizes)

    def _assemble(self, hyperparameters, dtype, name, sizes=None, **more):
        if hyperparameters is None:
            hyperparameters = self.sizes(**sizes or {})
        elif sizes or not isinstance(hyperparameters, self.sizes):
            raise ValueError(
                f"`hyperparameters` must be {self.sizes.__name__}(...), with no field named beside "
                f"it. Received: {hyperparameters!r} and {', '.join(sizes or ()) or 'no field'}. "
                f"Or pass fields alone, as in {type(self).__name__}(d_model=512)."
            )
        for unused in self.unused:
            value = getattr(hyperparameters, unused)
            if value != getattr(self.sizes, unused):
                raise ValueError(
                    f"`{unused}` decides nothing in a {type(self).__name__}. Received: "
                    f"{unused}={value}. Leave it out."
                )
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        inputs, outputs, parts = self.assembled(hyperparameters, policy, **more)
        own_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
        super().__init__(inputs=inputs, outputs=ops.cast(outputs, "float32"), name=name or own_name)
        self.dtype_policy = policy  # By it, Keras scales the loss in float16.
        self.hyperparameters = hyperparameters
        for key, part in parts.items():
            setattr(self, key, part)

    def assembled(
        self, hyperparameters: Sizes, policy: keras.DTypePolicy
    ) -> tuple[Any, Tensor, dict[str, keras.layers.Layer]]:
        """Make the model's inputs, its output, and the layers that become attributes, by name."""
        raise NotImplementedError

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.embedding.dtype_policy),
            "frozen": [layer.path for layer in self._flatten_layers() if not layer.trainable],
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = cls(**{key: value for key, value in config.items() if key != "frozen"})
        for layer in model._flatten_layers():
            if layer.path in config.get("frozen", ()):
                layer.trainable = False
        return model


def stack_arguments(hyperparameters: Sizes) -> dict[str, Any]:
    """Return the arguments of `Encoder` and `Decoder`, but for the heads, by hyperparameters."""
    sizes = hyperparameters.as_dict()
    start = RESIDUAL_INITIALIZATIONS[hyperparameters.residual_initialization]
    return {
        **{name: sizes[name] for name in COPIED if name in sizes},
        "activation": _named(ACTIVATIONS[hyperparameters.activation]),
        "feed_forward": _named(FEED_FORWARDS[hyperparameters.activation]),
        "norm": _named(NORMS[hyperparameters.norm]),
        "residual_initialization": _named(start),
    }


def _named(choice):
    """Return what a choice of `variants` names in `layers` or Keras; a function, as it is."""
    if not isinstance(choice, str):
        return choice
    return getattr(layers, choice, None) or keras.activations.get(choice)


def encoding(hyperparameters: Sizes) -> layers.PositionEncoding:
    """Make the encoding of positions that is added to embeddings."""
    return POSITIONS[hyperparameters.positions].encoding(layers, hyperparameters)


def heads(hyperparameters: Sizes) -> tuple[AttentionHeads, AttentionHeads, AttentionHeads]:
    """Make the heads of the encoder, of the decoder, and of the attention to the memory."""
    name, number = attention_and_number(hyperparameters.attention)
    attention = ATTENTIONS[name]
    relative = POSITIONS[hyperparameters.positions].relative

    def parts(positions):
        return {
            "similarity": _named(attention.similarity)(),
            "positions": positions,
            "dropout": hyperparameters.attention_dropout,
        }

    return (
        attention.encoder(layers, hyperparameters, number, **parts(relative(layers, True))),
        attention.decoder(layers, hyperparameters, number, **parts(relative(layers, False))),
        layers.SoftmaxHeads(**parts(layers.RelativePositions())),
    )


def embeddings(
    sizes: Sizes, policy: keras.DTypePolicy, encoding: Any, name: str = "embedding", **more
) -> PositionalEmbedding:
    """Make the table of a model's pieces, with an encoding; `more` as in `PositionalEmbedding`."""
    of_sizes = {"token_dropout": sizes.token_dropout, "scaled": sizes.scaled_embeddings}
    options = {"encoding": encoding, **of_sizes, "dtype": policy, "name": name, **more}
    return PositionalEmbedding(sizes.vocabulary_size, sizes.d_model, **options)


def projection(
    sizes: Sizes, policy: keras.DTypePolicy, output_bias: bool = False
) -> PositionalEmbedding:
    """Make a table for the projection onto the vocabulary alone."""
    options = {"encoding": layers.NoEncoding(), "output_bias": output_bias, "name": "projection"}
    return PositionalEmbedding(sizes.vocabulary_size, sizes.d_model, dtype=policy, **options)


class Stepper:
    """Logits of the next token, from the newest token of each of K hypotheses per sentence and the
    state after the tokens before it.

    Make it before a loop over tokens, not inside: its constructor lays out the matrices.

    Args:
        model: a built `EncoderDecoder` or `LanguageModel`.
        table: the `laid_out` of an earlier `matrix()` of the projection, to reuse it.

    Call arguments:
        ids: the newest tokens, (B, K).
        position: how many tokens came before them, a scalar.
        state: as in `DecoderStepper`, like `growing`.
        source: what `EncoderDecoder.encode` returned; a language model has none.

    Returns:
        Logits, float32 (B, K, V); the new state; and how much each hypothesis attends to the
        source, float32 (B, K, S): the mean of the heads of the last layer that attends to it. None
        without a source.
    """

    def __init__(self, model: SizedModel, table: Tensor | None = None):
        self._embedding = model.embedding
        self._decoder = model.decoder.stepper()
        self._projection = model.projection
        self._table = model.projection.matrix(table) if model.projection.is_laid_out else None
        self.growing = self._decoder.growing

    def start(self, rows: int | Tensor) -> State:
        """Return the state before the first token, of B K rows."""
        return self._decoder.start(rows)

    def is_token(self, source: dict[str, Any]) -> Tensor:
        """Return which positions of the source are tokens, not padding: booleans (B, S)."""
        return source["mask"][:, 0]

    def __call__(
        self, ids: Tensor, position: Tensor, state: State, source: dict[str, Any] | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        x = self._embedding(ids, positions=ops.reshape(position, (1, 1)))
        source = source or {}
        x, state, attention = self._decoder(x, state, source.get("memory"), source.get("mask"))
        return self._logits(x), state, attention

    def _logits(self, x):
        rows = ops.reshape(x, (-1, x.shape[-1]))
        if self._table is None:
            # TensorFlow repacks the second matrix in every product: let that be the few rows.
            logits = ops.transpose(ops.matmul(self._projection.table, ops.transpose(rows)))
        else:
            [logits] = self._table(rows)
        if self._projection.bias is not None:
            logits = logits + ops.cast(self._projection.bias, logits.dtype)
        return ops.reshape(ops.cast(logits, "float32"), (*ops.shape(x)[:2], logits.shape[-1]))


class BlockStepper(Stepper):
    """A `Stepper` that also reads k tokens of one hypothesis per sentence, and proposes as many."""

    def __init__(self, model: SizedModel, table: Tensor | None = None):
        super().__init__(model, table)
        self.block_size = model.proposal_heads.block_size
        self._heads = model.proposal_heads.stepper()

    def block(
        self, ids: Tensor, lengths: Tensor, state: State, source: dict[str, Any]
    ) -> tuple[Tensor, Tensor, State]:
        """Read k tokens of each sentence, (B, k), after `lengths` (B,) earlier ones. The state has
        as many positions t as the longest sentence; a sentence's own are the last. Returns logits
        after each token, (B, k, V), the decoder's output, (B, k, d_model), and the new state.
        """
        size = self.block_size
        longest = ops.max(lengths)
        is_own = ops.arange(longest) >= longest - lengths[:, None]
        before = ops.repeat(is_own[:, None], size, axis=1)
        within = ops.broadcast_to(layers.causal_mask(size), (ops.shape(ids)[0], size, size))
        mask = ops.concatenate([before, within], axis=2)
        x = self._embedding(ids, positions=lengths[:, None] + ops.arange(size))
        x, state, _ = self._decoder(x, state, source["memory"], source["mask"], mask)
        return self._logits(x), x, state

    def block_alone(
        self, ids: Tensor, position: Tensor, state: State, source: dict[str, Any]
    ) -> tuple[Tensor, Tensor, State]:
        """Do `block` for one sentence, after `position` tokens; only the state's end may be cut."""
        positions = position + ops.arange(self.block_size)
        mask = ops.arange(position + self.block_size) <= positions[:, None]
        x = self._embedding(ids, positions=positions[None])
        x, state, _ = self._decoder(x, state, source["memory"], source["mask"], mask)
        return self._logits(x), x, state

    def first_proposals(self, source: dict[str, Any]) -> Tensor:
        """Return `proposals` before the first token."""
        x = ops.zeros((1, self._embedding.d_model), self._embedding.compute_dtype)
        return self.proposals(x, ops.full((1,), BOS), ops.zeros((1,), "int32"), source)

    def proposals(self, x: Tensor, ids: Tensor, lengths: Tensor, source: dict[str, Any]) -> Tensor:
        """Return logits of heads 2 to k, float32 (B, k - 1, V). x, (B, d_model), is the decoder's
        output at one position; the tokens predicted there, ids (B,), follow `lengths` (B,) tokens.
        """
        e = ops.reshape(self._embedding(ids[:, None], positions=lengths[:, None]), ops.shape(x))
        return self._logits(self._heads(x, e, source["proposals"], source["mask"]))


@keras.saving.register_keras_serializable("keras_transformer")
class BFloat16Weights(keras.DTypePolicy):
    """Weights in bfloat16, half the bytes of float32; activations in float32. Decoding reads all of
    the decoder's weights for every token (section 6.1).

    A `Stepper` multiplies its matrices in bfloat16. Sums, norms, attention and scores, and the
    whole encoder, are computed in float32.
    """

    def __init__(self, name: str = "bfloat16_weights"):
        super().__init__("float32")
        self._name = name
        self._variable_dtype = "bfloat16"


def translation_policy(precision: str) -> keras.DTypePolicy:
    """Make the Keras dtype policy of a model that translates, "float32" or "bfloat16"."""
    policies = {"float32": keras.DTypePolicy("float32"), "bfloat16": BFloat16Weights()}
    if precision not in policies:
        raise ValueError(
            f"`precision` must be {' or '.join(policies)}. Received: {precision!r}. Others are for "
            "export --format=onnx, litert and web."
        )
    return policies[precision]
