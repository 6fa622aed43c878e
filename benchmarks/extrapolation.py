"""Who reads longer sentences than it was trained on: `python -m benchmarks.extrapolation`.

The paper chose sinusoids because they "may allow the model to extrapolate to sequence lengths
longer than the ones encountered during training" (Vaswani et al. 2017, section 3.5). Each kind of
positions trains a small model to copy sentences of 4 to 12 words, none of which comes twice, and
then copies longer ones. Printed is the share of tokens that are the likeliest where the right ones
came before.
"""

import numpy as np
from absl import app, flags

from benchmarks.copying import accuracy, train
from benchmarks.tables import print_table
from keras_transformer.models.variants import POSITIONS

STEPS = flags.DEFINE_integer("steps", 1500, "Updates of each model.", 1)
SEEDS = flags.DEFINE_integer("seeds", 1, "How many models of each kind.", 1)

LENGTHS = ((4, 12), (13, 16), (17, 24), (25, 40))


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
