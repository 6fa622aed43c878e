"""The interface of the attention inside `MultiHeadAttention`, between its projections (Vaswani et
al. 2017, section 3.2.2).
"""

from keras_transformer.layers.prototypes import Part
from keras_transformer.layers.tensors import KeysAndValues, Tensor


class AttentionHeads(Part):
    """Attention of h heads, from projected queries, keys and values to the outputs of the heads.

    `MultiHeadAttention` takes one and makes its own copy. A subclass defines `with_weights`. It
    also defines `call` if whole sequences are computed faster without the weights, and `stepper` if
    a decoder can use it.

    Call arguments:
        query: (B, h, T, d_k).
        key: (B, h, S, d_k).
        value: (B, h, S, d_v).
        attention_mask: booleans broadcastable to (B, T, S), True where the query may attend.
        causal: `causal_mask(T)` where no query may attend to a later key (then S = T), or None.
            It is joined with `attention_mask`.

    Returns:
        (B, h, T, d_v).
    """

    def build(self, query_shape, key_shape, value_shape):
        # h, d_k and d_v, which a stepper's first state is made of.
        self.sizes = (query_shape[1], query_shape[-1], value_shape[-1])

    def call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        heads, _ = self.with_weights(query, key, value, attention_mask, causal)
        return heads

    def with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second how much each query attends to each key, (B, h, T, S)."""
        raise NotImplementedError

    def stepper(self):
        """Attention of each row's newest position to itself and all before it, with the current
        weights. See `SoftmaxStepper` for its methods.
        """
        raise NotImplementedError

    def memory(self, key: Tensor, value: Tensor) -> KeysAndValues:
        """What is kept of a memory's keys and values for `look`, tensors of B rows."""
        return key, value

    def look(
        self, query: Tensor, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend to a memory with the newest position of K hypotheses a sentence.

        Args:
            query: (B, h, K, d_k).
            memory: what `memory` returned.
            memory_mask: booleans, (B, 1, S).

        Returns:
            Heads (B, h, K, d_v), and the weights (B, h, K, S).
        """
        return self.with_weights(query, *memory, memory_mask)

    def compute_output_shape(self, query_shape, key_shape, value_shape):
        return (*query_shape[:-1], value_shape[-1])


def mask_of_keys(attention_mask: Tensor | None) -> Tensor | None:
    """A mask that is the same for all queries, as it is.

    Args:
        attention_mask: booleans, (B, 1, S), or None.

    Raises:
        ValueError: if it has a row for each query.
    """
    if attention_mask is not None and attention_mask.shape[-2] != 1:
        raise ValueError(
            "`attention_mask` must be of shape (B, 1, S), because this attention computes no "
            f"scores of single pairs. Received: shape {tuple(attention_mask.shape)}. Pass what is "
            "padding as attention_mask=padding_mask(ids), and causal=causal_mask(T) beside it."
        )
    return attention_mask
