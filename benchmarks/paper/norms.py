"""Why there are residual sums and layer norms (Vaswani et al. 2017, section 3.1): `python -m
benchmarks.paper.norms`.

1. The norm of the loss's gradient at the input of each layer of a deep encoder as it starts, for
   the paper's post-norm, for pre-norm, and without the residual sum.
2. The same small model with layer norms and with batch norms, trained to copy sentences of uneven
   length. A batch norm takes its mean and variance over all positions of a batch, padding among
   them: what a sentence gives depends on its mates, and at inference on means of other batches.
"""

import functools

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.paper.copying import SIZES, WORDS, accuracy, sentences, train
from benchmarks.tables import print_table
from keras_transformer.layers import Encoder, PostNorm, PreNorm
from keras_transformer.models.variants import NORMS
from keras_transformer.visualization import charts
from keras_transformer.visualization.picture_file import write_picture
from pipelines.special_ids import EOS

LAYERS = flags.DEFINE_integer("layers", 18, "N of the encoder whose gradients are measured.", 1)
STEPS = flags.DEFINE_integer("steps", 1500, "Updates of each model that is trained.", 1)
PLOT = flags.DEFINE_string("plot", None, "File of the picture of the gradients, .png or .svg.")
THEME = flags.DEFINE_enum("theme", "light", ["light", "dark"], "Colours of the picture.")

WIDTH = 128
SENTENCES = 8
LENGTH = 20


@keras.saving.register_keras_serializable("benchmarks")
class NoResidual(PostNorm):
    """`LayerNorm(Dropout(Sublayer(x)))`."""

    def call(self, x, sublayer):
        y, by_product = sublayer(x)
        return self.norm(self.sublayer_dropout(y)), by_product


@keras.saving.register_keras_serializable("benchmarks")
class BatchPostNorm(PostNorm):
    """`BatchNorm(x + Dropout(Sublayer(x)))`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm = keras.layers.BatchNormalization(dtype=self.dtype_policy, name="norm")


STACKS = {
    "post-norm, depth-scaled": {"norm": PostNorm},
    "post-norm, Glorot": {"norm": PostNorm, "residual_initialization": "glorot"},
    "pre-norm, depth-scaled": {"norm": PreNorm},
    "pre-norm, Glorot": {"norm": PreNorm, "residual_initialization": "glorot"},
    "no residual sum": {"norm": NoResidual, "residual_initialization": "glorot"},
}


def gradient_norms(layers, **choices):
    """Norms of the gradient at the input of each layer, bottom first, divided by that at the output
    of the stack.
    """
    keras.utils.set_random_seed(1)
    if isinstance(choices.get("residual_initialization"), str):
        name = choices["residual_initialization"]
        choices["residual_initialization"] = f"keras_transformer>{name}"
    encoder = Encoder(layers, num_heads=4, d_model=WIDTH, d_ff=4 * WIDTH, **choices)
    random = np.random.default_rng(0)
    shape = (SENTENCES, LENGTH, WIDTH)
    x = tf.constant(random.normal(size=shape).astype("float32"))
    direction = tf.constant(random.normal(size=shape).astype("float32"))
    encoder.build(shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        states = [x]
        for layer in encoder.layers:
            states.append(layer(states[-1]))
        loss = tf.reduce_sum(encoder.final_norm(states[-1]) * direction)
    gradients = [float(tf.norm(gradient)) for gradient in tape.gradient(loss, states)]
    return [gradient / gradients[-1] for gradient in gradients[:-1]]


def of_mates(model):
    """How much the logits of a sentence change with its batch mates: the largest difference, when
    training and at inference, without dropout.
    """
    source, target, _ = sentences(np.random.default_rng(5), 8, 4, 12)
    changes = []
    for training in (True, False):
        alone = model((source[:2], target[:2]), training=training)
        together = model((source, target), training=training)
        changes.append(float(tf.reduce_max(tf.abs(alone - together[:2]))))
    return changes


def draw(norms, path, theme):
    """Draw the gradient norms over depth, a curve for each stack."""
    series = {name: (list(range(1, len(found) + 1)), found) for name, found in norms.items()}
    panel = charts.Panel(
        "gradient at a layer's input / at the output", "layer, from the input", series, "y"
    )
    write_picture(path, functools.partial(charts.draw, [panel]), theme)


def main(_):
    norms = {name: gradient_norms(LAYERS.value, **choices) for name, choices in STACKS.items()}
    shown = sorted({1, LAYERS.value // 3 + 1, 2 * LAYERS.value // 3 + 1, LAYERS.value})
    rows = [(name, *(f"{norms[name][n - 1]:.2g}" for n in shown)) for name in norms]
    print_table((f"gradient, {LAYERS.value} layers", *(f"layer {n}" for n in shown)), rows)
    if PLOT.value:
        draw(norms, PLOT.value, THEME.value)

    NORMS["batch"] = BatchPostNorm
    rows = []
    for norm in ("post", "batch"):
        model = train(STEPS.value, norm=norm)
        shares = [f"{100 * accuracy(model, *lengths):.1f}" for lengths in ((4, 12), (4, 4))]
        changes = [f"{change:.1e}" for change in of_mates(model)]
        rows.append(({"post": "layer", "batch": "batch"}[norm], *shares, *changes))
    header = ("norm", "% right, 4 to 12 words", "% right, 4 words", "mates change, training")
    print_table((*header, "at inference"), rows)
    print(f"{WORDS} words from id {EOS + 1}, {SIZES}")


if __name__ == "__main__":
    app.run(main)
