"""What a translation loses without a head (Michel et al. 2019, "Are Sixteen Heads Really Better
than One?", section 3.2), from the heads of Vaswani et al. 2017, section 3.2.2.

A head reaches the rest of a model through its d_v rows of W^O alone. With these rows at zero the
model computes what it would if the head gave zeros, and no layer knows of it.
"""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from keras_transformer.layers import MultiHeadAttention
from keras_transformer.models import Transformer


def attentions_of(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """The attention of each layer, by stack: "encoder", "decoder" and "cross"."""
    return {
        "encoder": [layer.self_attention for layer in model.encoder.layers],
        "decoder": [layer.self_attention for layer in model.decoder.layers],
        "cross": [layer.cross_attention for layer in model.decoder.layers],
    }


@contextlib.contextmanager
def without_head(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Let an attention do without one of its heads while the block runs.

    Args:
        attention: a built layer.
        head: its index, in [0, h).
    """
    kernel = attention.output_kernel
    kept = kernel.numpy()
    changed = kept.copy()
    changed[head * attention.d_v : (head + 1) * attention.d_v] = 0
    kernel.assign(changed)
    try:
        yield
    finally:
        kernel.assign(kept)


def losses(model: Transformer, score: Callable[[], float]) -> dict[str, np.ndarray]:
    """How much a score falls without each head, one at a time.

    Args:
        model: the model, which is left as it was.
        score: measures the model as it is.

    Returns:
        {stack: (N, h)}; positive where the head is of use.
    """
    whole = score()
    found = {}
    for stack, attentions in attentions_of(model).items():
        heads = attentions[0].num_heads
        found[stack] = np.zeros((len(attentions), heads))
        for layer, attention in enumerate(attentions):
            for head in range(heads):
                with without_head(attention, head):
                    found[stack][layer, head] = whole - score()
    return found
