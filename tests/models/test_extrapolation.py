"""Section 3.5: sinusoids "may allow the model to extrapolate to sequence lengths longer than the
ones encountered during training".
"""

import pytest

from benchmarks.paper import copying

LONGER = (13, 16)


@pytest.mark.slow
def test_sinusoids_read_longer_sentences_than_learned_positions_do():
    sinusoidal, learned = (
        copying.train(positions, steps=1000) for positions in ("sinusoidal", "learned")
    )
    for model in (sinusoidal, learned):
        assert copying.accuracy(model, *copying.TRAINED) > 0.95
    shares = [copying.accuracy(model, *LONGER) for model in (sinusoidal, learned)]
    assert shares[0] > shares[1] + 0.05
