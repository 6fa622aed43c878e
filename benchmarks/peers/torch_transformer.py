"""`torch.nn.Transformer` in eager mode, taking turns: the same sizes, ties, dropouts, loss and
optimizer as ours.
"""

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
        rates = 1e4 ** (-torch.arange(0, self.d_model, 2) / self.d_model)
        angles = torch.arange(LONGEST)[:, None] * rates
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

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


def main():
    parent = Parent()
    task = parent.task
    torch.manual_seed(1)
    model = Model(task["size"], task["vocabulary_size"]).train()
    adam = {"lr": 1e-4, "betas": (0.9, 0.98), "eps": 1e-9, "fused": True}
    optimizer = torch.optim.Adam(model.parameters(), **adam)
    batches = Batches(task["batches"])
    rounds = task["precision"] == "bfloat16"

    def update(number):
        """One update by batch n; it is done when this returns."""
        source, target, labels = (torch.from_numpy(ids).long() for ids in batches.shifted(number))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rounds):
            logits = model(source, target)
        smoothed = {"ignore_index": 0, "label_smoothing": LABEL_SMOOTHING}
        loss = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), **smoothed)
        loss.backward()
        optimizer.step()
        loss.item()

    parent.serve(update)


if __name__ == "__main__":
    main()
