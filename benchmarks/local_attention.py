"""Attention restricted to a neighbourhood (Vaswani et al. 2017, section 4), in blocks and by
masking the full one: `python -m benchmarks.local_attention`.

Both get the same queries, keys and values of h heads, one sentence of n positions. They take turns
in one process, each as a compiled graph. Printed are the largest difference, and medians of
seconds: of the attention alone, and of a `MultiHeadAttention` with its four projections.
"""

import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.tables import print_table
from benchmarks.timing import medians
from keras_transformer.layers import Masks, MultiHeadAttention, causal_mask
from keras_transformer.layers.attention_variants.relative_positions import distances
from keras_transformer.layers.attention_variants.restricted import LocalHeads
from keras_transformer.layers.scaled_dot_product import SoftmaxHeads

LENGTH = flags.DEFINE_integer("length", 4096, "n, positions of the sentence.", 1)
RADIUS = flags.DEFINE_integer("radius", 128, "r, how far a query sees, in positions.", 1)
WIDTH = flags.DEFINE_integer("width", 512, "d_model.", 1)
HEADS = flags.DEFINE_integer("heads", 8, "h.", 1)
ROUNDS = flags.DEFINE_integer("rounds", 5, "How often each of them is timed.", 1)


def near(length, radius):
    """The mask that the full attention needs, booleans (1, n, n)."""
    return (tf.abs(distances(length, length)) <= radius)[None]


def of_heads(length, radius, width, heads, causal):
    """The attention alone, in blocks and masked: functions of no arguments."""
    random = np.random.default_rng(0)
    shape = (1, heads, length, width // heads)
    inputs = [tf.constant(random.normal(size=shape).astype("float32")) for _ in range(3)]
    local = LocalHeads(radius)
    full = SoftmaxHeads()
    for layer in (local, full):
        layer.build(*[(None, heads, None, width // heads)] * 3)
    after = causal_mask(length) if causal else None
    mask = near(length, radius)
    return {
        "blocks": tf.function(lambda: local(*inputs, masks=Masks(None, after))),
        "masked": tf.function(lambda: full(*inputs, masks=Masks(mask, after))),
    }


def of_layers(length, radius, width, heads, causal):
    """A layer with its projections, in blocks and masked: functions of no arguments."""
    random = np.random.default_rng(1)
    x = tf.constant(random.normal(size=(1, length, width)).astype("float32"))
    local = MultiHeadAttention(heads, width, heads=LocalHeads(radius))
    full = MultiHeadAttention(heads, width)
    for layer in (local, full):
        layer.build(*[(None, None, width)] * 3)
    full.set_weights(local.get_weights())
    after = causal_mask(length) if causal else None
    mask = near(length, radius)
    return {
        "blocks": tf.function(lambda: local(x, x, x, causal=after)),
        "masked": tf.function(lambda: full(x, x, x, attention_mask=mask, causal=after)),
    }


def main(argv):
    sizes = (LENGTH.value, RADIUS.value, WIDTH.value, HEADS.value)
    rows = []
    for what, make in (("attention", of_heads), ("layer", of_layers)):
        for causal in (False, True):
            functions = make(*sizes, causal)
            outputs = [function().numpy() for function in functions.values()]
            difference = np.abs(outputs[0] - outputs[1]).max()
            seconds = medians(functions, ROUNDS.value)
            times = [f"{seconds[name]:.3f}" for name in ("blocks", "masked")]
            ratio = seconds["masked"] / seconds["blocks"]
            name = f"{what}, {'causal' if causal else 'both ways'}"
            rows.append((name, f"{difference:.1e}", *times, f"{ratio:.1f}"))
    named = dict(zip(("n", "r", "d", "h"), sizes, strict=True))
    title = ", ".join(f"{name} = {size}" for name, size in named.items())
    print_table((title, "difference", "blocks, s", "masked, s", "x"), rows)


if __name__ == "__main__":
    app.run(main)
