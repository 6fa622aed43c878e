"""How fast the paper's models train on one accelerator: `KERAS_BACKEND=jax python -m
benchmarks.gpu`.

Needs keras, jax and rich, neither TensorFlow nor a network. Trains base and big (Vaswani et al.
2017, table 3) with a vocabulary of 37,000 on random ids in bfloat16, through `model.fit` as
`keras_transformer.train` sets it up, and prints source + target tokens a second and the share of
the chip's own matrix-product peak, measured in the same process.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.sizes import training_flops
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.training import fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import optimizer
from keras_transformer.training.schedule import TransformerSchedule

SIZES = {
    "base": {"num_layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8, "dropout": 0.1},
    "big": {"num_layers": 6, "d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3},
}


class StepTimes(keras.callbacks.Callback):
    """Seconds of each step, waited for."""

    def on_train_begin(self, logs=None):
        self.seconds = []
        self.before = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        float(logs["loss"])
        now = time.perf_counter()
        self.seconds.append(now - self.before)
        self.before = now


def peak_flops(width, rounds=20):
    """Operations a second of the fastest product of two square bfloat16 matrices."""
    a, b = (jax.random.normal(jax.random.key(n), (width, width), jnp.bfloat16) for n in range(2))
    product = jax.jit(jnp.matmul)
    product(a, b).block_until_ready()
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        product(a, b).block_until_ready()
        seconds.append(time.perf_counter() - began)
    return 2 * width**3 / min(seconds)


def train(size, vocabulary_size, tokens, length, steps):
    """Median seconds of a step, those of compiling left out, and its operations."""
    keras.utils.set_random_seed(1)
    model = Transformer(
        Hyperparameters(vocabulary_size=vocabulary_size, **size), dtype="mixed_bfloat16"
    )
    fit.compile_model(
        model, optimizer(TransformerSchedule(size["d_model"])), LabelSmoothedCrossEntropy(0.1)
    )
    ids = np.random.default_rng(1).integers(
        4, vocabulary_size, (4, tokens // length, length), dtype=np.int32
    )
    times = StepTimes()
    model.fit(
        (((i, i), i, np.ones(i.shape, "float32")) for i in (ids[n % 4] for n in range(steps))),
        steps_per_epoch=steps,
        callbacks=[times],
        shuffle=False,
        verbose=0,
    )
    lengths = np.full(tokens // length, length)
    return statistics.median(times.seconds[3:]), training_flops(
        size, vocabulary_size, lengths, lengths
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=[*SIZES])
    parser.add_argument("--vocabulary_size", type=int, default=37000)
    parser.add_argument(
        "--tokens", type=int, default=25000, help="a side and batch; the paper's 25,000"
    )
    parser.add_argument("--length", type=int, default=50, help="of each sentence")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--peak_width", type=int, default=8192)
    arguments = parser.parse_args()
    peak = peak_flops(arguments.peak_width)
    print(
        f"{jax.devices()[0].device_kind}: matrix products of bfloat16 at most {peak / 1e12:.1f} "
        "TFLOP/s"
    )
    for name in arguments.sizes:
        seconds, flops = train(
            SIZES[name],
            arguments.vocabulary_size,
            arguments.tokens,
            arguments.length,
            arguments.steps,
        )
        tokens = 2 * (arguments.tokens // arguments.length) * arguments.length
        share = flops / seconds / peak
        print(
            f"{name}: {tokens / seconds:,.0f} source + target tokens/s, {seconds * 1e3:.1f} ms a "
            f"step, {share:.1%} of that peak"
        )


if __name__ == "__main__":
    main()
