"""Heads that propose the tokens after the next one, for blockwise parallel decoding (Stern et al.
2018, "Blockwise Parallel Decoding for Deep Autoregressive Models", sections 4 and 6), between the
decoder and the projection of Vaswani et al. 2017, figure 1.
"""

import keras
from keras import ops

from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.linear_maps import Dense, Matrix
from keras_transformer.layers.prototypes import KeepsShape
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class ProposalHeads(KeepsShape):
    """From what the decoder gives at position t, k heads predict the tokens t + 1, ..., t + k.

        head_1(x_t) = x_t
        head_m(x_t) = x_t + FFN_m(x_t + e_(t + 1) W),    m = 2, ..., k

    The projection onto the vocabulary follows each head. The first is the model itself, so that
    frozen weights give the text that they gave before. e_(t + 1) is the embedding of the token
    t + 1, which is certain before the others are proposed. The authors' heads do not read it;
    benchmarks/LOG.md has both.

    In training each position t + 1 is predicted by a head that is drawn for it, by head_m from
    x_(t + 1 - m). The authors draw one for each batch. The expectation is the mean of the losses of
    the k heads, at the price of one projection.

    Args:
        block_size: k, at least 2.
        d_ff: inner width of each FFN_m.

    Call arguments:
        x: (B, T, d_model).
        e: embeddings of the tokens that the decoder read, (B, T, d_model).
        training: whether to draw heads; else x comes back as it is.

    Returns:
        (B, T, d_model).
    """

    arguments = ("block_size", "d_ff")

    def __init__(self, block_size: int, d_ff: int, **kwargs):
        super().__init__(**kwargs)
        self.block_size = block_size
        self.d_ff = d_ff
        self.networks = [
            FeedForward(d_ff, dtype=self.dtype_policy, name=f"head_{number}")
            for number in range(2, block_size + 1)
        ]
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, x_shape, e_shape):
        self.certain = Dense(x_shape[-1], use_bias=False, dtype=self.dtype_policy, name="certain")
        self.certain.build(e_shape)
        for network in self.networks:
            network.build(x_shape)

    def call(self, x: Tensor, e: Tensor, training: bool = False) -> Tensor:
        if not training:
            return x
        batch, length, _ = ops.shape(x)
        following = ops.pad(e[:, 1:], [[0, 0], [0, 1], [0, 0]])
        read = x + self.certain(following)
        drawn = keras.random.randint(
            (batch, length, 1), 1, self.block_size + 1, seed=self.seed_generator
        )
        places = ops.arange(length)[None, :, None]
        chosen = x
        for number, network in enumerate(self.networks, 2):
            given = x + network(read)
            before = ops.pad(given, [[0, 0], [number - 1, 0], [0, 0]])[:, :length]
            # The first positions have no x so far before them: head_1 predicts these.
            is_its = ops.logical_and(drawn == number, places >= number - 1)
            chosen = ops.where(is_its, before, chosen)
        return chosen

    def stepper(self) -> "ProposalStepper":
        """The heads 2 to k for one position of each row, with the weights as they are now."""
        return ProposalStepper(self)


class ProposalStepper:
    """The heads 2 to k of rows x and e, (rows, d_model) each: (rows, k - 1, d_model)."""

    def __init__(self, heads: ProposalHeads):
        policy = heads.dtype_policy
        inner = [network.inner for network in heads.networks]
        outer = [network.outer for network in heads.networks]
        self._certain = Matrix([heads.certain.kernel], policy)
        # All heads in two products.
        kernel = ops.concatenate([one.kernel for one in inner], axis=1)
        self._inner = Matrix([kernel], policy, [ops.concatenate([one.bias for one in inner])])
        kernels = ops.concatenate([one.kernel for one in outer])
        biases = ops.concatenate([one.bias for one in outer])
        self._outer = ops.reshape(ops.cast(kernels, "float32"), (len(outer), heads.d_ff, -1))
        self._bias = ops.reshape(ops.cast(biases, "float32"), (len(outer), 1, -1))
        self._shape = (-1, len(outer), heads.d_ff)

    def __call__(self, x: Tensor, e: Tensor) -> Tensor:
        [certain] = self._certain(e)
        [inner] = self._inner(x + certain)
        inner = ops.transpose(ops.reshape(ops.relu(inner), self._shape), (1, 0, 2))
        # A stack of products in bfloat16 would be summed in it too, where a processor has none.
        outer = ops.matmul(ops.cast(inner, "float32"), self._outer) + self._bias
        return ops.transpose(x + ops.cast(outer, x.dtype), (1, 0, 2))
