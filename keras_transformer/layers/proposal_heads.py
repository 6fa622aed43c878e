"""Heads that propose the tokens after the next one, for blockwise parallel decoding (Stern et al.
2018, "Blockwise Parallel Decoding for Deep Autoregressive Models", sections 4 and 6), between the
decoder and the projection of Vaswani et al. 2017, figure 1.
"""

import keras
from keras import ops

from keras_transformer.layers.add_and_norm import PostNorm
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.linear_maps import Dense, Matrix
from keras_transformer.layers.prototypes import KeepsShape, check_sizes
from keras_transformer.layers.tensors import KeysAndValues, Sublayer, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class ProposalHeads(KeepsShape):
    """From the decoder's output at position t, k heads predict the tokens t + 1, ..., t + k.

        head_1(x_t) = x_t
        head_m(x_t) = PostNorm(z, FFN(z)),                              m = 2, ..., k
        z           = PostNorm(y, MultiHead(y, memory, memory))
        y           = x_t + [x_t; e_(t + 1)] W_m + b_m

    The projection onto the vocabulary follows each head. The first head is the model itself, so
    that a frozen model gives the same text as before. e_(t + 1) is the embedding of token t + 1,
    which is certain before the others are proposed. Before the first token, x is 0 and the certain
    token is BOS. The authors' heads, x_t + FFN_m(x_t), read neither that token nor the source;
    benchmarks/LOG.md compares them too.

    In training a head is drawn for each position t + 1: head_m predicts it from x_(t + 1 - m). The
    authors draw one head for each batch. The expected loss is the mean of the k heads' losses, at
    the cost of one projection.

    Args:
        block_size: k, at least 2.
        num_heads: h of the attention to the source.
        d_ff: inner width of the FFN.
        d_k, d_v: of the attention, as in `MultiHeadAttention`.
        dropout: probability in [0, 255/256], as in `PostNorm`.

    Call arguments:
        x: (B, T, d_model).
        e: embeddings of the tokens that the decoder read, (B, T, d_model).
        memory: the encoder's output, (B, S, any width).
        memory_mask: booleans broadcastable to (B, T, S).
        training: whether to draw heads; if not, x is returned unchanged.

    Returns:
        (B, T, d_model).
    """

    def __init__(
        self,
        block_size: int,
        num_heads: int,
        d_ff: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(2, block_size=block_size)
        policy = self.dtype_policy
        self.block_size = block_size
        self.num_heads = num_heads
        self.d_ff = d_ff
        self.d_k = d_k
        self.d_v = d_v
        self.dropout = dropout
        self.attention_norm = PostNorm(dropout, dtype=policy, name="attention_norm")
        self.feed_forward = FeedForward(d_ff, dtype=policy, name="feed_forward")
        self.feed_forward_norm = PostNorm(dropout, dtype=policy, name="feed_forward_norm")
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, x_shape, e_shape, memory_shape):
        policy = self.dtype_policy
        width = x_shape[-1]
        self.maps = Dense((self.block_size - 1) * width, dtype=policy, name="maps")
        self.maps.build((*x_shape[:-1], 2 * width))
        sizes = (self.num_heads, width, self.d_k, self.d_v)
        self.attention = MultiHeadAttention(*sizes, dtype=policy, name="attention")
        self.attention.build(x_shape, memory_shape, memory_shape)
        for layer in (self.attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(x_shape)

    def call(
        self,
        x: Tensor,
        e: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        if not training:
            return x
        batch, length, _ = ops.shape(x)
        head = keras.random.randint(
            (batch, length, 1), 1, self.block_size + 1, seed=self.seed_generator
        )
        # The first positions have no x that far before them: head_1 predicts these.
        head = ops.where(head > ops.arange(length)[:, None] + 2, 1, head)
        # At position t this is x_(t - 1), which predicted the token whose embedding is e_t.
        before = ops.pad(x, [[0, 0], [1, 0], [0, 0]])[:, :length]
        mapped = self.maps(ops.concatenate([before, e], axis=-1))
        y = x
        for m, added in enumerate(ops.split(mapped, self.block_size - 1, -1), 2):
            y_m = ops.pad(before + added, [[0, 0], [m - 2, 0], [0, 0]])[:, :length]
            y = ops.where(head == m, y_m, y)

        def look(y):
            return self.attention(y, memory, memory, attention_mask=memory_mask), None

        proposal = self.through(y, look, lambda z: (self.feed_forward(z), None))
        return ops.where(head == 1, x, proposal)

    def through(self, y: Tensor, look: Sublayer, feed: Sublayer) -> Tensor:
        """Map y to the input of the projection; `look` attends to the source."""
        z, _ = self.attention_norm(y, sublayer=look)
        return self.feed_forward_norm(z, sublayer=feed)[0]

    def memory_cache(self, memory: Tensor) -> KeysAndValues:
        """Project the keys and values of a memory, (B, S, any width), once per sentence."""
        return self.attention.keys_and_values(memory, memory)

    def stepper(self) -> "ProposalStepper":
        """Make heads 2 to k for one position of each row, with the current weights."""
        return ProposalStepper(self)


class ProposalStepper:
    """Heads 2 to k for one position of each row: (rows, k - 1, d_model). It takes x and e, (rows,
    d_model) each, or one row of both for all; `memory_cache`'s result; and a mask, (rows, 1, S).
    """

    def __init__(self, heads: ProposalHeads):
        self._maps = Matrix([heads.maps.kernel], heads.dtype_policy, [heads.maps.bias])
        self._count = heads.block_size - 1
        self._through = heads.through
        self._look = heads.attention.memory_stepper()
        self._feed = heads.feed_forward.stepper()

    def __call__(self, x: Tensor, e: Tensor, source: KeysAndValues, mask: Tensor) -> Tensor:
        [mapped] = self._maps(ops.concatenate([x, e], axis=1))
        y = x[:, None] + ops.reshape(mapped, (-1, self._count, x.shape[-1]))
        if x.shape[0] == 1 != mask.shape[0]:
            y = ops.repeat(y, ops.shape(mask)[0], axis=0)
        rows = self._through(
            ops.reshape(y, (-1, x.shape[-1])),
            lambda y: self._look(y, source, mask),
            lambda z: self._feed(z, ()),
        )
        return ops.reshape(rows, ops.shape(y))
