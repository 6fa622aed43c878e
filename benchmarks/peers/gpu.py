"""Training speed on one GPU beside `torch.nn.Transformer`: `KERAS_BACKEND=jax python -m
benchmarks.peers.gpu`, where JAX and torch see the GPU. The paper's base by default, updates of
about 25,000 tokens a side, all of one shape.

One process: so many updates by `model.fit`, as many by torch, and again. The first round compiles
and does not count. tok/s counts source and target. torch is in eager mode, its float32 products are
TF32.
"""

import argparse
import os
import statistics
import time

# JAX would take three quarters of the memory, and torch needs as much.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import keras
import numpy as np
import torch

from benchmarks.peers import our_training
from benchmarks.peers.batches import DROPOUT, LABEL_SMOOTHING, SIZES, shifted
from benchmarks.peers.torch_transformer import Training
from benchmarks.tables import print_table

BATCHES = 4


class Turns(keras.callbacks.Callback):
    """After so many of our updates as many of torch's; keeps what both took, in seconds."""

    def __init__(self, torchs, batches, steps):
        super().__init__()
        self.torchs = torchs
        self.batches = batches
        self.steps = steps
        self.rounds = []

    def on_train_begin(self, logs=None):
        self.done = 0
        self.begun = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        # Waits for the GPU.
        float(logs["loss"])
        self.done += 1
        if self.done % self.steps:
            return
        ended = time.perf_counter()
        for number in range(self.steps):
            self.torchs.update(*self.batches[number % BATCHES])
        self.rounds.append((ended - self.begun, time.perf_counter() - ended))
        self.begun = time.perf_counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="base")
    parser.add_argument("--precision", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--vocabulary_size", type=int, default=37_000)
    parser.add_argument("--sentences", type=int, default=784)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    shape = (options.sentences * BATCHES, options.length)
    random = np.random.default_rng(0)
    sources, targets = (
        random.integers(4, options.vocabulary_size, shape).astype(np.uint16) for _ in range(2)
    )
    sizes = (SIZES[options.size], options.vocabulary_size, options.precision)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batches = list(map(shifted, np.split(sources, BATCHES), np.split(targets, BATCHES)))
    turns = Turns(Training(*sizes, device), batches, options.steps)
    ours = our_training.compiled(*sizes, DROPOUT, LABEL_SMOOTHING)
    pairs = our_training.as_pairs(sources, targets)
    tokens = options.sentences * options.length
    last_step = options.steps * (options.rounds + 1)
    our_training.train(ours, pairs, tokens, turns, last_step)
    counted = turns.rounds[1:]
    rows = []
    for place, name in enumerate(("ours", "torch")):
        seconds = statistics.median(taken[place] for taken in counted) / options.steps
        ratio = statistics.median(taken[1] / taken[place] for taken in counted)
        rows.append([name, f"{1000 * seconds:.1f}", f"{2 * tokens / seconds:,.0f}", f"{ratio:.2f}"])
    print_table(["system", "ms an update", "tok/s", "x torch"], rows)


if __name__ == "__main__":
    main()
