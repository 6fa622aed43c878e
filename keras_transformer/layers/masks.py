"""Who may attend to whom (Vaswani et al. 2017, section 3.2.3).

A mask is boolean and broadcastable to (B, T, S): True where query t may attend to key s. Masks are
joined with `&`.
"""

from keras import ops

from keras_transformer.layers.tensors import Tensor
from pipelines.special_ids import PAD


def padding_mask(ids: Tensor) -> Tensor:
    """True at the keys that are tokens, False at padding.

    Args:
        ids: integers, (B, S), padded with PAD.

    Returns:
        Booleans, (B, 1, S).
    """
    return ops.not_equal(ids, PAD)[:, None, :]


def causal_mask(length: int | Tensor) -> Tensor:
    """True where the key does not come after the query: "prevent positions from attending to
    subsequent positions".

    Args:
        length: T, a Python or tensor integer.

    Returns:
        Booleans, (1, T, T), lower triangular.
    """
    positions = ops.arange(length)
    return (positions[:, None] >= positions[None, :])[None]
