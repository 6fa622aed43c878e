"""Training speed on one GPU beside `torch.nn.Transformer`: `KERAS_BACKEND=jax python -m
benchmarks.peers.gpu`, where JAX and torch see the GPU. The paper's base by default, updates of
about 25,000 tokens a side, all of one shape.

One process: so many updates by `model.fit`, as many by torch, and again. The first round compiles
and does not count. tok/s counts source and target.
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
from torch.nn import functional

from benchmarks.peers import our_training
from benchmarks.peers.batches import BOS, DROPOUT, LABEL_SMOOTHING, SIZES
from benchmarks.peers.torch_transformer import Model
from benchmarks.tables import print_table

BATCHES = 4


class TorchSystem:
    """torch's eager mode, with a fused Adam and TF32 products, on batches (sentences, length)."""

    def __init__(self, size, vocabulary, precision, sources, targets, sentences):
        torch.manual_seed(1)
        torch.set_float32_matmul_precision("high")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = Model(size, vocabulary).to(self.device).train()
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        self.rounded = precision == "bfloat16"
        cut = [slice(start, start + sentences) for start in range(0, len(sources), sentences)]
        self.batches = [(sources[part], targets[part]) for part in cut]

    def step(self, number):
        source, target = (
            torch.from_numpy(ids.astype(np.int64)).to(self.device)
            for ids in self.batches[number % len(self.batches)]
        )
        shifted = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.rounded):
            logits = self.model(source, shifted)
        losses = functional.cross_entropy(
            logits.float().flatten(0, 1), target.flatten(), label_smoothing=LABEL_SMOOTHING
        )
        losses.backward()
        self.optimizer.step()
        # Waits for the GPU.
        losses.item()


class Turns(keras.callbacks.Callback):
    """After so many of our updates as many of torch's; keeps what both took, in seconds."""

    def __init__(self, other, steps):
        super().__init__()
        self.other = other
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
            self.other.step(number)
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
    turns = Turns(TorchSystem(*sizes, sources, targets, options.sentences), options.steps)
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
