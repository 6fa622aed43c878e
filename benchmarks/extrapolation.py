"""Who reads longer sentences than it was trained on: `python -m benchmarks.extrapolation`.

The paper chose sinusoids because they "may allow the model to extrapolate to sequence lengths
longer than the ones encountered during training" (Vaswani et al. 2017, section 3.5). Each kind of
positions trains a small model to copy sentences of 4 to 12 words, none of which comes twice, and
then copies longer ones. Printed is the share of tokens that are the likeliest where the right ones
came before.
"""

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.models import Transformer
from keras_transformer.models.variants import POSITIONS
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines.special_ids import BOS, EOS, PAD

STEPS = flags.DEFINE_integer("steps", 1500, "Updates of each model.", 1)
SEEDS = flags.DEFINE_integer("seeds", 1, "How many models of each kind.", 1)

WORDS = 60
TRAINED = (4, 12)
LENGTHS = ((4, 12), (13, 16), (17, 24), (25, 40))
BATCH = 32
SIZES = {"num_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 4, "dropout": 0.0}


def sentences(random, count, shortest, longest):
    """Sources, padded to the longest, each closed by EOS; what the decoder reads; and labels."""
    source = np.full((count, longest + 1), PAD)
    for row in source:
        length = random.integers(shortest, longest + 1)
        row[:length] = EOS + 1 + random.permutation(WORDS)[:length]
        row[length] = EOS
    target = np.concatenate([np.full((count, 1), BOS), source[:, :-1]], axis=1)
    target[target == EOS] = PAD
    return source, target, source


def train(positions, steps, seed=1, norm="post"):
    """A model that copies short sentences."""
    keras.utils.set_random_seed(seed)
    model = Transformer(vocabulary_size=EOS + 1 + WORDS, positions=positions, norm=norm, **SIZES)
    loss = LabelSmoothedCrossEntropy(0.0)
    peak = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
    )
    optimizer = keras.optimizers.Adam(peak, beta_2=0.98)
    optimizer.build(model.trainable_variables)
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids] * 3, autograph=False)
    def step(source, target, labels):
        with tf.GradientTape() as tape:
            weights = tf.cast(labels != PAD, tf.float32)
            value = loss(labels, model((source, target), training=True), sample_weight=weights)
        variables = model.trainable_variables
        gradients = tape.gradient(value, [variable.value for variable in variables])
        optimizer.apply(gradients, variables)
        return value

    random = np.random.default_rng(seed)
    for _ in range(steps):
        step(*(array.astype("int32") for array in sentences(random, BATCH, *TRAINED)))
    return model


def accuracy(model, shortest, longest, count=200):
    """Share of labels that are the likeliest, of sentences that were not trained on."""
    source, target, labels = sentences(np.random.default_rng(10), count, shortest, longest)
    likeliest = np.argmax(model((source, target)), axis=-1)
    return (likeliest == labels)[labels != PAD].mean()


def main(argv):
    rows = []
    for positions in POSITIONS:
        models = [train(positions, STEPS.value, seed) for seed in range(1, SEEDS.value + 1)]
        shares = [np.mean([accuracy(model, *lengths) for model in models]) for lengths in LENGTHS]
        rows.append((positions, *(f"{100 * share:.1f}" for share in shares)))
        print(rows[-1], flush=True)
    spans = [f"{shortest} to {longest} words" for shortest, longest in LENGTHS]
    print_table(("%", *spans), rows)


if __name__ == "__main__":
    app.run(main)
