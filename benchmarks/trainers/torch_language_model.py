"""`torch.nn.TransformerEncoder` with a causal mask, in eager mode, taking turns: the sizes, table,
dropout, loss and optimizer of our `LanguageModel`.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.turns import Parent

DROPOUT = 0.1


class Model(nn.Module):
    """Layers between a tied embedding with learned positions."""

    def __init__(self, size):
        super().__init__()
        width = size["d_model"]
        self.embedding = nn.Embedding(size["vocabulary_size"], width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.positions = nn.Parameter(torch.randn(size["max_positions"], width) * width**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.scale = width**0.5
        layer = nn.TransformerEncoderLayer(
            width,
            size["num_heads"],
            size["d_ff"],
            DROPOUT,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        # Dropout where ours has it: on the sublayers' outputs alone.
        layer.dropout.p = 0.0
        layer.self_attn.dropout = 0.0
        self.stack = nn.TransformerEncoder(
            layer, size["num_layers"], nn.LayerNorm(width), enable_nested_tensor=False
        )

    def forward(self, ids):
        length = ids.shape[1]
        x = self.dropout(self.embedding(ids) * self.scale + self.positions[:length])
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.stack(x, mask=mask, is_causal=True)
        return functional.linear(x, self.embedding.weight)


def main():
    parent = Parent()
    task = parent.task
    torch.manual_seed(1)
    model = Model(task["size"]).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    shape = (task["batch"], task["length"] + 1)

    def train(number):
        drawn = np.random.default_rng(number).integers(4, task["size"]["vocabulary_size"], shape)
        text = torch.from_numpy(drawn)
        logits = model(text[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    parent.serve(train)


if __name__ == "__main__":
    main()
