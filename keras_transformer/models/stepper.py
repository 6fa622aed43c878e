"""A decoder (Vaswani et al. 2017, figure 1), one target token at a time."""

from typing import Any

from keras import ops

from keras_transformer.layers import Matrix
from keras_transformer.layers.tensors import State, Tensor


class Stepper:
    """Logits of the next token, from one new token for each of K hypotheses a sentence and the
    state that those before it left.

    Make it before a loop over tokens, not inside: it lays out its matrices when it is made.

    `growing` has the structure of the state. It names the axis along which each tensor of the state
    grows by one at every step, or -1 for a tensor of fixed size.

    Args:
        model: a built `EncoderDecoder` or `LanguageModel`.

    Call arguments:
        ids: the newest tokens, (B, K).
        position: how many tokens came before them, a scalar.
        state: what `start` or the step before returned.
        source: what `EncoderDecoder.encode` returned; a language model has none.

    Returns:
        Logits, float32 (B, K, V); the new state; and how much each hypothesis attends to the
        source, float32 (B, K, S): the mean of the heads of the last layer that attends to it. None
        without a source.
    """

    def __init__(self, model):
        self._embedding = model.embedding
        self._decoder = model.decoder.stepper()
        self._table = Matrix([ops.transpose(model.projection.table)], model.projection.dtype_policy)
        self.growing = self._decoder.growing

    def start(self, rows: int | Tensor) -> State:
        """The state before the first token, of B K rows."""
        return self._decoder.start(rows)

    def is_token(self, source: dict[str, Any]) -> Tensor:
        """Which positions of the source are no padding, booleans (B, S)."""
        return source["mask"][:, 0]

    def __call__(
        self, ids: Tensor, position: Tensor, state: State, source: dict[str, Any] | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        x = self._embedding(ids, positions=ops.reshape(position, (1, 1)))
        source = source or {}
        x, state, attention = self._decoder(x, state, source.get("memory"), source.get("mask"))
        return self._logits(x), state, attention

    def _logits(self, x):
        [logits] = self._table(ops.reshape(x, (-1, x.shape[-1])))
        shape = ops.shape(x)
        return ops.reshape(ops.cast(logits, "float32"), (shape[0], shape[1], logits.shape[-1]))
