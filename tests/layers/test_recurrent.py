"""The layers of the LSTM encoder-decoder against torch's LSTM with the same weights, which reads
each sentence alone, and additive attention in NumPy (Bahdanau et al. 2014, appendix A.1.2).
"""

import numpy as np
import pytest

from keras_transformer.layers import RecurrentDecoder, RecurrentEncoder

torch = pytest.importorskip("torch", reason="install the extra [oracles] to compare with torch")

D, N = 6, 2
LENGTHS = (5, 2, 3)
STATES = {"rtol": 0, "atol": 1e-6}
MASK = (np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None])[:, None]


def torch_lstm(x, ahead, behind=None):
    """An LSTM of torch over one sentence (n, width), with the weights of one Keras layer or two."""
    width = ahead.cell.recurrent_kernel.shape[0]
    lstm = torch.nn.LSTM(x.shape[-1], width, bidirectional=behind is not None)
    for layer, suffix in ((ahead, ""), (behind, "_reverse")):
        if layer is None:
            continue
        kernel, recurrent, bias = layer.get_weights()
        arrays = {"weight_ih": kernel.T, "weight_hh": recurrent.T, "bias_ih": bias}
        arrays["bias_hh"] = np.zeros_like(bias)
        for name, array in arrays.items():
            getattr(lstm, f"{name}_l0{suffix}").data = torch.tensor(array)
    with torch.no_grad():
        return lstm(torch.tensor(np.asarray(x, "float32")))[0].numpy()


def encoded(encoder, x):
    """What the encoder makes of one sentence (S, d)."""
    for ahead, behind in zip(encoder.forward_layers, encoder.backward_layers, strict=True):
        x = x + torch_lstm(x, ahead, behind)
    return x


def attended(attention, x, memory):
    """v^T tanh(x W^Q + memory W^K), its softmax, and what it finds, for one sentence."""
    query, key, value, output, vector = (np.float64(w) for w in attention.get_weights())
    hidden = np.tanh((x @ query)[:, None] + (memory @ key)[None])
    scores = np.exp(hidden @ vector[0])
    weights = scores / scores.sum(-1, keepdims=True)
    return weights @ (memory @ value) @ output, weights


def decoded(decoder, x, memory):
    """What the decoder makes of one target (T, d) and one memory (S, d), and its attention."""
    first, second = decoder.layers
    x = x + torch_lstm(x, first)
    context, weights = attended(decoder.attention, x, memory)
    x = x + torch_lstm(np.concatenate([x, context], -1), second)
    return np.tanh(np.concatenate([x, context], -1) @ decoder.combination.get_weights()[0]), weights


@pytest.fixture
def encoder(randomized, random):
    return randomized(RecurrentEncoder(N, D), random(2, 3, D))


@pytest.fixture
def decoder(randomized, random):
    return randomized(RecurrentDecoder(N, D), random(2, 3, D), random(2, 4, D))


def test_the_encoder_reads_each_sentence_as_torch_reads_it_alone(encoder, random):
    x = random(3, max(LENGTHS), D)
    found = np.asarray(encoder(x, attention_mask=MASK))
    for row, length in enumerate(LENGTHS):
        expected = encoded(encoder, x[row, :length])
        np.testing.assert_allclose(found[row, :length], expected, rtol=0, atol=1e-5)


def test_the_decoder_is_torch_s_lstm_with_additive_attention(decoder, random):
    x = random(3, 4, D)
    memory = random(3, max(LENGTHS), D)
    found, weights = decoder.with_attention(x, memory, MASK)
    np.testing.assert_allclose(decoder(x, memory, memory_mask=MASK), found, **STATES)
    assert weights.shape == (3, 1, 1, 4, max(LENGTHS))
    for row, length in enumerate(LENGTHS):
        expected, shares = decoded(decoder, x[row], memory[row, :length])
        np.testing.assert_allclose(found[row], expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(weights[row, 0, 0, :, :length], shares, rtol=0, atol=1e-6)
        assert not np.any(weights[row, 0, 0, :, length:])


@pytest.mark.parametrize("kind", [RecurrentEncoder, RecurrentDecoder])
def test_dropout_stands_on_the_output_of_each_layer(kind):
    assert [layer.rate for layer in kind(N, D, dropout=0.25).output_dropouts] == [0.25] * N
