"""Models of the package transformers whose weights are all random: a gain of 1 or a bias of 0 may
hide a mistake. Without the packages a test is skipped.
"""

import pytest

torch = pytest.importorskip("torch", reason="install the extra [oracles]")
transformers = pytest.importorskip("transformers", reason="install the extra [oracles]")
pytest.importorskip("safetensors", reason="install the extra [oracles]")


def random_of_theirs(kind, config, seed, scale):
    """A model of a class of transformers, the same whichever tests ran before."""
    torch.manual_seed(seed)
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Tables of sines stay.
            if parameter.requires_grad:
                parameter += scale * torch.randn(parameter.shape)
    return model
