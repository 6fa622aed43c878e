"""`torch.nn.Transformer` in eager mode, taking turns: the same sizes, ties, dropouts, loss and
optimizer as ours.
"""

import time

import torch
from torch import nn
from torch.nn import functional

from benchmarks.peers.batches import DROPOUT, LABEL_SMOOTHING, Batches
from benchmarks.peers.turns import Parent

LONGEST = 512


class Model(nn.Module):
    """`nn.Transformer` between a three-way tied embedding with sinusoids."""

    def __init__(self, size, vocabulary_size):
        super().__init__()
        self.d_model = size["d_model"]
        self.embedding = nn.Embedding(vocabulary_size, self.d_model)
        nn.init.normal_(self.embedding.weight, std=self.d_model**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        layers = size["num_layers"]
        self.transformer = nn.Transformer(
            self.d_model, size["num_heads"], layers, layers, size["d_ff"], DROPOUT, batch_first=True
        )
        # As in the paper: no layer normalization after the last one, no dropout but on sublayer
        # outputs and embedding sums.
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
            layer.dropout.p = 0.0
            layer.self_attn.dropout = 0.0
        for layer in self.transformer.decoder.layers:
            layer.multihead_attn.dropout = 0.0
        angles = torch.arange(LONGEST)[:, None] * torch.exp(
            -torch.arange(0, self.d_model, 2) / self.d_model * torch.log(torch.tensor(1e4))
        )
        self.register_buffer(
            "positions",
            torch.stack([angles.sin(), angles.cos()], -1).reshape(LONGEST, self.d_model),
        )

    def embed(self, ids):
        return self.dropout(
            self.embedding(ids) * self.d_model**0.5 + self.positions[: ids.shape[1]]
        )

    def forward(self, source, target):
        padding = source == 0
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return functional.linear(x, self.embedding.weight)


def product_speed(dtype, width=512):
    """GFLOP/s of a square matrix product, the best of five."""
    matrix = torch.randn(width, width).to(dtype)
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - began)
    return 2 * width**3 / min(seconds[1:]) / 1e9


class Training:
    """Updates of a `Model` by a fused Adam on a device, in float32 or with products in bfloat16."""

    def __init__(self, size, vocabulary_size, precision, device="cpu"):
        torch.manual_seed(1)
        self._device = device
        self._rounds = precision == "bfloat16"
        self._model = Model(size, vocabulary_size).to(device).train()
        self._optimizer = torch.optim.Adam(
            self._model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
        )

    def update(self, source, target, labels):
        """One update by arrays of ids, (B, S) and twice (B, T); it is done when this returns."""
        source, target, labels = (
            torch.from_numpy(ids).long().to(self._device) for ids in (source, target, labels)
        )
        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self._device, dtype=torch.bfloat16, enabled=self._rounds):
            logits = self._model(source, target)
        losses = functional.cross_entropy(
            logits.float().flatten(0, 1),
            labels.flatten(),
            ignore_index=0,
            label_smoothing=LABEL_SMOOTHING,
        )
        losses.backward()
        self._optimizer.step()
        losses.item()


def main():
    parent = Parent()
    task = parent.task
    if task["precision"] == "bfloat16":
        speed = product_speed(torch.bfloat16)
        of_float32 = product_speed(torch.float32)
        if speed < of_float32 / 4:
            parent.say(
                unavailable=f"torch emulates bfloat16 on this processor: {speed:.1f} GFLOP/s, "
                f"float32 {of_float32:.0f}"
            )
            return
    training = Training(task["size"], task["vocabulary_size"], task["precision"])
    batches = Batches(task["batches"])
    parent.serve(lambda number: training.update(*batches.shifted(number)))


if __name__ == "__main__":
    main()
