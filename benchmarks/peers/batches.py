"""What every system that trains is given, whatever its framework: sizes of the model (Vaswani et
al. 2017, table 3), and batches of ids in a file.
"""

import numpy as np

BASE = {"num_layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8}
OF_MARIAN = {"activation": "swish", "attention_bias": True, "output_bias": True}
SIZES = {
    "small": {"num_layers": 3, "d_model": 256, "d_ff": 1024, "num_heads": 4},
    "base": BASE,
    # As releases of OPUS-MT.
    "opus_mt": {**BASE, **OF_MARIAN, "positions": "marian_mt"},
}
DROPOUT = 0.1
LABEL_SMOOTHING = 0.1
BOS = 2


class Batches:
    """What `save` wrote. Batch n is (source, target) of int32 ids (B, S) and (B, T), padded with 0;
    after the last comes the first.

    Args:
        path: the file.
    """

    def __init__(self, path):
        with np.load(path) as archive:
            arrays = [archive[name] for name in archive.files]
        self._pairs = list(zip(arrays[::2], arrays[1::2], strict=True))

    def __getitem__(self, number):
        return self._pairs[number % len(self._pairs)]

    def shifted(self, number):
        """Batch n as (source, target after BOS, target)."""
        source, target = self[number]
        after = np.concatenate([np.full_like(target[:, :1], BOS), target[:, :-1]], axis=1)
        return source, after, target


def save(path, pairs):
    """Write (source, target) batches."""
    np.savez(path, *(array for pair in pairs for array in pair))
