"""The layers of the convolutional encoder-decoder against torch's convolution and GLU with the same
weights, on each sentence alone, and the attention of Gehring et al. 2017, section 3.3, in NumPy;
those of the LSTM encoder-decoder against torch's LSTM and additive attention.
"""

import numpy as np
import pytest
import tensorflow as tf
from oracles import paper

from keras_transformer.layers import (
    ConvolutionalDecoder,
    ConvolutionalEncoder,
    ConvolutionBlock,
    RecurrentDecoder,
    RecurrentEncoder,
)

torch = pytest.importorskip("torch", reason="install the extra [oracles] to compare with torch")

D, N, K = 6, 2, 3
LENGTHS = (5, 2, 3)
MASK = (np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None])[:, None]
ROOT = 0.5**0.5


def torch_block(block, x, before, behind):
    """A block over one sentence, a torch tensor (n, d), padded with zeros before and behind."""
    kernel, bias = (torch.tensor(array) for array in block.get_weights())
    padded = torch.nn.functional.pad(x.T[None], (before, behind))
    y = torch.nn.functional.conv1d(padded, kernel.permute(2, 1, 0), bias)
    return (torch.nn.functional.glu(y[0].T, dim=-1) + x) * ROOT


def keys_of(encoder, x):
    for block in encoder.blocks:
        x = torch_block(block, x, K // 2, K // 2)
    return x


def read_by_convolutions(encoder, x):
    """What the encoder makes of one sentence (S, d): keys and values."""
    keys = keys_of(encoder, torch.tensor(x)).numpy()
    return np.concatenate([keys, (keys + x) * ROOT], axis=-1)


def decoded(decoder, g, memory):
    """What the decoder makes of one target g (T, d), and the weights of its attentions."""
    keys, values = np.split(memory, 2, axis=-1)
    x = g
    shares = []
    for block, attention in zip(decoder.blocks, decoder.attentions, strict=True):
        x = torch_block(block, torch.tensor(np.float32(x)), K - 1, 0).numpy()
        kernel, bias = attention.get_weights()
        query = (x @ kernel + bias + g) * ROOT
        weights = paper.softmax(query @ keys.T / D)
        x = (x + len(keys) ** 0.5 * weights @ values) * ROOT
        shares.append(weights)
    kernel, bias = decoder.output_map.get_weights()
    return x @ kernel + bias, shares


@pytest.fixture
def encoder(randomized, random):
    return randomized(ConvolutionalEncoder(N, D, K), random(2, 3, D))


@pytest.fixture
def decoder(randomized, random):
    return randomized(ConvolutionalDecoder(N, D, K), random(2, 3, D), random(2, 4, 2 * D))


def test_a_memory_without_a_mask_has_all_its_tokens(decoder, random):
    x = random(2, 4, D)
    memory = random(2, 5, 2 * D)
    everywhere = np.ones((2, 1, 5), bool)
    unmasked = decoder(x, memory)
    np.testing.assert_allclose(unmasked, decoder(x, memory, memory_mask=everywhere), rtol=1e-6)


def test_each_attention_passes_an_nth_of_its_gradient_to_the_keys(encoder, random):
    x = random(1, 4, D)
    upstream = random(1, 4, D)
    theirs = torch.tensor(x[0], requires_grad=True)
    (keys_of(encoder, theirs) * torch.tensor(upstream[0])).sum().backward()
    with tf.GradientTape() as tape:
        whole = tf.constant(x)
        tape.watch(whole)
        product = tf.reduce_sum(encoder(whole)[..., :D] * upstream)
    gradient = tape.gradient(product, whole)[0]
    np.testing.assert_allclose(gradient, theirs.grad.numpy() / N, rtol=0, atol=1e-6)


def test_a_block_starts_with_the_variance_that_keeps_that_of_its_output(rng):
    """Gehring et al. 2017, section 3.5: N(0, 4 p / (k d))."""
    block = ConvolutionBlock(64, 5, dropout=0.2)
    block.build((None, None, 64))
    kernel, bias = block.get_weights()
    assert kernel.std() == pytest.approx((4 * 0.8 / (5 * 64)) ** 0.5, rel=0.02)
    assert not np.any(bias)


def test_dropout_stands_before_each_convolution_and_behind_the_last_block():
    decoder = ConvolutionalDecoder(N, D, dropout=0.25)
    dropouts = [*(block.input_dropout for block in decoder.blocks), decoder.output_dropout]
    assert [layer.rate for layer in dropouts] == [0.25] * (N + 1)


# The LSTM encoder-decoder against torch's LSTM with the same weights, which reads each sentence
# alone, and additive attention in NumPy (Bahdanau et al. 2014, appendix A.1.2).


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


def encoded_by_lstms(encoder, x):
    """What the encoder makes of one sentence (S, d)."""
    for ahead, behind in zip(encoder.forward_layers, encoder.backward_layers, strict=True):
        x = x + torch_lstm(x, ahead, behind)
    return x


def attended(attention, x, memory):
    """Context and softmax of v^T tanh(x W^Q + memory W^K), for one sentence."""
    query, key, value, output, vector = (np.float64(w) for w in attention.get_weights())
    hidden = np.tanh((x @ query)[:, None] + (memory @ key)[None])
    weights = paper.softmax(hidden @ vector[0])
    return weights @ (memory @ value) @ output, weights


def decoded_by_lstms(decoder, x, memory):
    """What the decoder makes of one target (T, d) and one memory (S, d), and its attention."""
    first, second = decoder.layers
    x = x + torch_lstm(x, first)
    context, weights = attended(decoder.attention, x, memory)
    x = x + torch_lstm(np.concatenate([x, context], -1), second)
    kernel = decoder.combination.get_weights()[0]
    return np.tanh(np.concatenate([x, context], -1) @ kernel), [weights]


READERS = [
    (ConvolutionalEncoder(N, D, K), read_by_convolutions),
    (RecurrentEncoder(N, D), encoded_by_lstms),
]


@pytest.mark.parametrize(("encoder", "alone"), READERS, ids=["convolutions", "LSTMs"])
def test_an_encoder_reads_each_sentence_as_torch_reads_it_alone(encoder, alone, randomized, random):
    x = random(3, max(LENGTHS), D)
    randomized(encoder, x)
    actual = np.asarray(encoder(x, attention_mask=MASK))
    for row, length in enumerate(LENGTHS):
        expected = alone(encoder, x[row, :length])
        np.testing.assert_allclose(actual[row, :length], expected, rtol=0, atol=1e-5)


# A decoder, the width of its memory, its oracle in torch for one sentence, and the tolerance of a
# second call.
WRITERS = [
    (ConvolutionalDecoder(N, D, K), 2 * D, decoded, 0),
    (RecurrentDecoder(N, D), D, decoded_by_lstms, 1e-6),
]


@pytest.mark.parametrize("writer", WRITERS, ids=["convolutions", "LSTMs"])
def test_a_decoder_is_torch_s_with_attention(writer, randomized, random):
    decoder, width, alone, apart = writer
    x = random(3, 4, D)
    memory = random(3, max(LENGTHS), width)
    randomized(decoder, x, memory)
    actual, weights = decoder.with_attention(x, memory, MASK)
    again = decoder(x, memory, memory_mask=MASK)
    np.testing.assert_allclose(again, actual, rtol=0, atol=apart)
    for row, length in enumerate(LENGTHS):
        expected, shares = alone(decoder, x[row], memory[row, :length])
        assert weights[row].shape == (len(shares), 1, 4, max(LENGTHS))
        np.testing.assert_allclose(actual[row], expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(weights[row, :, 0, :, :length], shares, rtol=0, atol=1e-6)
        assert not np.any(weights[row, :, 0, :, length:])


@pytest.mark.parametrize("kind", [RecurrentEncoder, RecurrentDecoder])
def test_dropout_stands_on_the_output_of_each_layer(kind):
    assert [layer.rate for layer in kind(N, D, dropout=0.25).output_dropouts] == [0.25] * N
