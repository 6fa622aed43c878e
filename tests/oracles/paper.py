"""Each equation of "Attention Is All You Need" (Vaswani et al. 2017) in NumPy float64, written from
the paper alone.

Nothing here imports keras_transformer: what is tested has no say in what is expected. Plain and
slow, one head and one angle at a time. Masks are boolean, True = may attend; a query that may
attend to nothing gets zeros.
"""

import math

import numpy as np


def softmax(x):
    """exp(x_i) / sum_j exp(x_j) along the last axis."""
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def scaled_dot_product_attention(query, key, value, mask=None):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V   (section 3.2.1, eq. 1).

    Illegal connections are "masked out (setting to -infinity)" in the softmax's input (section
    3.2.3).
    """
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(key.shape[-1])
    if mask is None:
        return softmax(scores) @ value
    exponentials = np.where(mask, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    sums = exponentials.sum(axis=-1, keepdims=True)
    return np.divide(exponentials, sums, out=np.zeros_like(exponentials), where=sums > 0) @ value


def multi_head_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None
):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V
    W_i^V)   (section 3.2.2).

    W_i^Q is the i-th of h equal blocks of columns of `w_query`, and so for K and V.
    """
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    w_query, w_key, w_value = (
        np.split(np.asarray(w, np.float64), num_heads, axis=1) for w in (w_query, w_key, w_value)
    )
    heads = [
        scaled_dot_product_attention(query @ w_query[i], key @ w_key[i], value @ w_value[i], mask)
        for i in range(num_heads)
    ]
    return np.concatenate(heads, axis=-1) @ np.asarray(w_output, np.float64)


def feed_forward(x, w_1, b_1, w_2, b_2):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2   (section 3.3, eq. 2)."""
    x, w_1, b_1, w_2, b_2 = (np.asarray(a, np.float64) for a in (x, w_1, b_1, w_2, b_2))
    return np.maximum(0.0, x @ w_1 + b_1) @ w_2 + b_2


def swiglu(x, w, w_2, v):
    """(Swish(x W) * x V) W_2   (Shazeer 2020, eq. 6), Swish(a) = a / (1 + exp(-a))."""
    x, w, w_2, v = (np.asarray(a, np.float64) for a in (x, w, w_2, v))
    return (x @ w / (1 + np.exp(-(x @ w))) * (x @ v)) @ w_2


def layer_norm(x, gain, bias, epsilon=1e-6):
    """Gain (x - mean) / sqrt(variance + epsilon) + bias over the last axis   (Ba et al. 2016, eq.
    4).
    """
    x, gain, bias = (np.asarray(a, np.float64) for a in (x, gain, bias))
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) + bias


def post_norm(x, sublayer, gain, bias, epsilon=1e-6):
    """LayerNorm(x + Sublayer(x))   (section 3.1)."""
    x = np.asarray(x, np.float64)
    return layer_norm(x + sublayer(x), gain, bias, epsilon)


def pre_norm(x, sublayer, gain, bias, epsilon=1e-6):
    """Pre-norm: x + Sublayer(LayerNorm(x))   (Xiong et al. 2020, "On Layer Normalization in the
    Transformer Architecture", table 1).
    """
    x = np.asarray(x, np.float64)
    return x + sublayer(layer_norm(x, gain, bias, epsilon))


def sinusoidal_positions(positions, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / 10000^(2i /
    d_model))   (section 3.5).
    """
    table = np.zeros((len(positions), d_model))
    for row, position in enumerate(positions):
        for i in range(d_model // 2):
            angle = position / 10000.0 ** (2 * i / d_model)
            table[row, 2 * i : 2 * i + 2] = math.sin(angle), math.cos(angle)
    return table


def embedding(ids, table):
    """E[ids] sqrt(d_model) + PE   (sections 3.4 and 3.5), for ids of (B, T)."""
    table = np.asarray(table, np.float64)
    d_model = table.shape[1]
    return table[ids] * math.sqrt(d_model) + sinusoidal_positions(range(np.shape(ids)[1]), d_model)


def learning_rate(step, d_model, warmup_steps):
    """Lrate = d_model^-0.5 min(step_num^-0.5, step_num warmup_steps^-1.5), step_num from 1
    (section 5.3, eq. 3).
    """
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def smoothed_labels(labels, vocabulary_size, epsilon):
    """q(v) = (1 - epsilon) [v = y] + epsilon / V   (section 5.4; Szegedy et al. 2015, section
    7).
    """
    return (1 - epsilon) * np.eye(vocabulary_size)[labels] + epsilon / vocabulary_size


def label_smoothed_cross_entropy(labels, logits, epsilon):
    """H(q, p) = -sum_v q(v) log p(v), p = softmax(logits), of every token   (section 5.4; Szegedy
    et al. 2015, section 7).
    """
    logits = np.asarray(logits, np.float64)
    top = logits.max(axis=-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return -(smoothed_labels(labels, logits.shape[-1], epsilon) * log_p).sum(axis=-1)


def parts(layer):
    """The weights of an encoder or decoder layer, by the names of `encoder_layer`'s."""
    sublayers = ("self_attention", "cross_attention", "feed_forward")
    names = [name + end for name in sublayers for end in ("", "_norm")]
    return {name: getattr(layer, name).get_weights() for name in names if hasattr(layer, name)}


def encoder_layer(x, weights, num_heads, mask=None, norm=post_norm):
    """Compute x = PostNorm(x, MultiHead(x, x, x)), then x = PostNorm(x, FFN(x))   (section 3.1,
    figure 1 left).

    Args:
        x: (B, S, d_model).
        weights: the arrays of each part, by name: `self_attention` (W^Q, W^K, W^V, W^O),
            `feed_forward` (W_1, b_1, W_2, b_2), `self_attention_norm` and `feed_forward_norm`
            (gain, bias).
        num_heads: h.
        mask: broadcastable to (B, S, S).
        norm: `post_norm` or `pre_norm`, around each sublayer.
    """

    def attend(x):
        return multi_head_attention(x, x, x, *weights["self_attention"], num_heads, mask)

    x = norm(x, attend, *weights["self_attention_norm"])
    return norm(
        x, lambda x: feed_forward(x, *weights["feed_forward"]), *weights["feed_forward_norm"]
    )


def decoder_layer(x, memory, weights, num_heads, mask=None, memory_mask=None, norm=post_norm):
    """As `encoder_layer`, with x = PostNorm(x, MultiHead(x, memory, memory)) in the middle
    (section 3.1, figure 1 right).

    `weights` also has `cross_attention` and `cross_attention_norm`; `memory_mask` is broadcastable
    to (B, T, S).
    """

    def attend(x):
        return multi_head_attention(x, x, x, *weights["self_attention"], num_heads, mask)

    def look(x):
        return multi_head_attention(
            x, memory, memory, *weights["cross_attention"], num_heads, memory_mask
        )

    x = norm(x, attend, *weights["self_attention_norm"])
    x = norm(x, look, *weights["cross_attention_norm"])
    return norm(
        x, lambda x: feed_forward(x, *weights["feed_forward"]), *weights["feed_forward_norm"]
    )


def widths(hp):
    """d_k and d_v of each head (section 3.2.2)."""
    return hp.d_k or hp.d_model // hp.num_heads, hp.d_v or hp.d_model // hp.num_heads


def millions(hp):
    """Section 3, added up: one table of embeddings, the matrices, the biases of the feed-forward
    networks, gain and bias of each norm.
    """
    attention = 2 * hp.d_model * hp.num_heads * sum(widths(hp))
    feed_forward = 2 * hp.d_model * hp.d_ff + hp.d_ff + hp.d_model
    layers = hp.num_layers * (3 * attention + 2 * feed_forward + 5 * 2 * hp.d_model)
    return (hp.vocabulary_size * hp.d_model + layers) / 1e6
