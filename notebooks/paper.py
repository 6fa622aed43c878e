# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper as a program
#
# *Attention Is All You Need* (Vaswani et al. 2017), section by section. Each has the formula, our
# layer, and a number that you can check by hand; cells compare the layer with NumPy in float64.
# Nothing is trained. Each claim of the text is asserted by a cell: if this page has run to its end,
# all of them are true.
#
# Four things are often written differently in notes on the paper. They are marked **Often wrong**.

# %%
import functools
import pathlib
import sys
import tempfile

from keras_transformer.startup import start_tensorflow

# Without what TensorFlow says of the machine.
start_tensorflow()

import keras
import numpy as np
import tensorflow as tf

import keras_transformer
from keras_transformer import layers
from keras_transformer.decoding.beam_search import length_penalty
from keras_transformer.training import averaging, checkpoint
from keras_transformer.visualization import charts, position_maps
from keras_transformer.visualization.attention_pictures import draw_matrix
from keras_transformer.visualization.charts import Panel, learning_rates
from keras_transformer.visualization.picture_file import Drawing
from keras_transformer.visualization.position_maps import Map
from pipelines.batches.bucketing import bucket

# benchmarks/ is next to the package.
sys.path.insert(0, str(pathlib.Path(keras_transformer.__file__).parents[1]))
keras.utils.set_random_seed(1)
draw = np.random.default_rng(1)


def softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def close(ours, oracle, tolerance=1e-5):
    """Whether two arrays agree, relative to the largest number in the oracle."""
    ours = np.asarray(ours, np.float64)
    return np.abs(ours - oracle).max() <= tolerance * np.abs(oracle).max()


# %% [markdown]
# ## 3.2.1 Scaled dot-product attention
#
#     Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V        (1)
#
# By hand: one query (1, 0), two keys (1, 0) and (0, 1), values 1 and 0. The products are 1 and 0,
# divided by sqrt(2) they are 0.7071 and 0, and the softmax gives the first value e^0.7071 /
# (e^0.7071 + 1) = 2.0281 / 3.0281 = 0.6698 of the attention.

# %%
query = np.array([[1.0, 0.0]], np.float32)
keys = np.eye(2, dtype=np.float32)
values = np.array([[1.0], [0.0]], np.float32)
attended, _ = layers.scaled_dot_product_attention(query, keys, values)
share = float(attended[0, 0])
assert round(share, 4) == 0.6698
print(f"{share:.4f}")

# %% [markdown]
# Why the scaling? Footnote 4: the product of two vectors of d_k independent components with mean 0
# and variance 1 has mean 0 and variance d_k. A softmax of numbers that large puts nearly all on one
# key, and its Jacobian, diag(p) - p p^T, vanishes: "it has extremely small gradients".

# %%
WIDTHS = [2**power for power in range(1, 12)]


def jacobian_norm(width, scale, queries=200, count=16):
    """The mean Frobenius norm of the softmax's Jacobian over random queries."""
    q = draw.normal(size=(queries, 1, width))
    k = draw.normal(size=(queries, count, width))
    p = softmax((q * k).sum(axis=-1) * scale)
    jacobians = p[:, :, None] * np.eye(count) - p[:, :, None] * p[:, None]
    return np.sqrt((jacobians**2).sum(axis=(1, 2))).mean()


products = (draw.normal(size=(100_000, 64)) * draw.normal(size=(100_000, 64))).sum(axis=-1)
assert abs(products.var() / 64 - 1) < 0.05

scaled = [jacobian_norm(width, width**-0.5) for width in WIDTHS]
unscaled = [jacobian_norm(width, 1.0) for width in WIDTHS]
assert max(scaled) / min(scaled) < 1.5
assert unscaled[-1] < 0.2 * unscaled[0]
series = {
    "divided by sqrt(d_k)": (WIDTHS, scaled),
    "not divided": (WIDTHS, unscaled),
}
Drawing(functools.partial(charts.draw, [Panel("norm of the softmax's Jacobian", "d_k", series)]))

# %% [markdown]
# ## 3.2.2 Multi-head attention
#
#     MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O
#     head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
#
# **Often wrong: dividing by sqrt(d_model).** Each head divides by the square root of *its own*
# width, d_k = d_model / h: by 8 in the base model, whose d_k is 64. Dividing by sqrt(512) = 22.6
# makes all products 2.8 times smaller, and attention flatter.

# %%
WIDTH = 512
HEADS = 8
attention = layers.MultiHeadAttention(num_heads=HEADS, d_model=WIDTH)
x = draw.normal(size=(1, 6, WIDTH)).astype("float32")
ours = attention(x, x, x)


def multi_head(x, attention, divisor):
    """The formula in float64, head by head."""
    kernels = (attention.query_kernel, attention.key_kernel, attention.value_kernel)
    q, k, v = (x.astype("float64") @ kernel.numpy() for kernel in kernels)
    of_heads = []
    for i in range(attention.num_heads):
        mine = slice(i * attention.d_k, (i + 1) * attention.d_k)
        of_heads.append(
            softmax(q[..., mine] @ k[..., mine].swapaxes(1, 2) / divisor) @ v[..., mine]
        )
    return np.concatenate(of_heads, axis=-1) @ attention.output_kernel.numpy()


assert attention.d_k == 64
assert close(ours, multi_head(x, attention, np.sqrt(64)))
assert not close(ours, multi_head(x, attention, np.sqrt(512)), tolerance=0.1)

# %% [markdown]
# "Due to the reduced dimension of each head, the total computational cost is similar to that of
# single-head attention with full dimensionality": even the number of weights is the same, four
# matrices of d_model x d_model.

# %%
alone = layers.MultiHeadAttention(num_heads=1, d_model=WIDTH)
alone(x, x, x)
assert attention.count_params() == alone.count_params() == 4 * 512 * 512 == 1_048_576

# %% [markdown]
# ## 3.2.3 What a mask lets position i see
#
# The decoder must not look ahead. The paper: masking, "combined with fact that the output
# embeddings are offset by one position, ensures that the predictions for position i can depend only
# on the known outputs at positions less than i".
#
# **Often wrong: that position i attends to positions less than i.** The offset does that part. The
# decoder reads, at position i, what was written at i - 1; the mask lets it attend to positions up
# to *and including* i. A mask without the diagonal would leave the first position nothing to attend
# to.

# %%
mask = layers.causal_mask(4).numpy()[0]
assert mask.tolist() == np.tril(np.ones((4, 4), bool)).tolist()

sizes = {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2, "dropout": 0.0}
model = keras_transformer.Transformer(vocabulary_size=20, **sizes)
source = np.array([[5, 6, 7, 3]])
read = np.array([[2, 8, 9, 10]])  # What the decoder reads: the start, then three tokens.
before = model((source, read)).numpy()
depends = np.zeros((4, 4), bool)
for j in range(4):
    changed = read.copy()
    changed[0, j] = 11
    difference = np.abs(model((source, changed)).numpy() - before).max(axis=-1)[0]
    depends[:, j] = difference > 1e-6
# The logits of position i depend on what is read at 0 to i, and on nothing after.
assert (depends == mask).all()
# In the encoder each position sees all.
weights = model.attention_weights(source, read)
assert (weights["encoder"].numpy() > 0).all()
# A mask without the diagonal gives the first query nothing.
strict = mask & ~np.eye(4, dtype=bool)
_, nothing = layers.scaled_dot_product_attention(x[0, :4], x[0, :4], x[0, :4], strict)
assert (nothing.numpy()[0] == 0).all()

# %% [markdown]
# One head of this model, whose weights are still random. A row is what a step writes, a column what
# it reads; the weights right of the diagonal are exactly 0.

# %%
of_head = weights["decoder"].numpy()[0, 0, 0]
assert (of_head[~mask] == 0).all()
assert np.allclose(of_head.sum(axis=-1), 1)
Drawing(
    functools.partial(draw_matrix, ["<s>", "y1", "y2", "y3"], ["y1", "y2", "y3", "(end)"], of_head)
)

# %% [markdown]
# ## 3.3 Position-wise feed-forward networks
#
#     FFN(x) = max(0, x W1 + b1) W2 + b2        (2)
#
# "Another way of describing this is as two convolutions with kernel size 1." With the same weights
# it is the same function.
#
# By hand: x = (1, -2), W1 the identity and b1 = (0, 1) give (1, -1), of which max(0, .) leaves
# (1, 0). With W2 = ((2, 3), (5, 7)) and b2 = (0.5, 0) that becomes (2.5, 3).

# %%
two_numbers = layers.FeedForward(2)
point = np.array([[1.0, -2.0]], np.float32)
two_numbers(point)
by_hand = [[[1, 0], [0, 1]], [0, 1], [[2, 3], [5, 7]], [0.5, 0]]
two_numbers.set_weights([np.array(weight) for weight in by_hand])
assert np.allclose(two_numbers(point), [[2.5, 3.0]])

feed_forward = layers.FeedForward(64)
x = draw.normal(size=(2, 5, 16)).astype("float32")
ours = feed_forward(x)
w1, b1, w2, b2 = (weight.numpy() for weight in feed_forward.weights)
oracle = np.maximum(x.astype("float64") @ w1 + b1, 0) @ w2 + b2
assert close(ours, oracle)
first = keras.layers.Conv1D(64, 1, activation="relu")
second = keras.layers.Conv1D(16, 1)
second(first(x))
first.set_weights([w1[None], b1])
second.set_weights([w2[None], b2])
assert close(second(first(x)), oracle)

# %% [markdown]
# ## 3.1 Add & Norm
#
#     LayerNorm(x + Sublayer(x)),   LayerNorm(r) = (r - mean(r)) / deviation(r)
#
# By hand: x = (1, 1) and Sublayer(x) = (0, 2) have the sum (1, 3), with mean 2 and deviation 1: it
# becomes (-1, 1), whatever its scale: (10, 30) does too.
#
# **Often wrong: the Jacobian of the residual branch without its norm.** It is often said that a
# gradient passes a residual branch unchanged, because the Jacobian of x + F(x) is I + F'. That is
# true of the sum. But in the paper the norm comes *after* the sum, so that the Jacobian of a layer
# is
#
#     J_LN (I + F'),   J_LN = (I - 1 1^T / d - n n^T / d) / sigma,   n the normalized vector
#
# (times the norm's gain, which starts as 1). J_LN removes two directions from the gradient, that of
# a constant and n itself, and divides it by sigma. So every layer changes the gradient.

# %%
norm = layers.LayerNormalization(1e-6)
for total in ([1.0, 3.0], [10.0, 30.0]):
    assert np.allclose(norm(np.array([total], np.float32)), [[-1.0, 1.0]], atol=1e-5)

width = 8
norm = layers.LayerNormalization(1e-6)
r = tf.constant(draw.normal(size=(1, width), scale=2.0).astype("float32"))
norm(r)
with tf.GradientTape() as tape:
    tape.watch(r)
    y = norm(r)
measured = tape.jacobian(y, r).numpy()[0, :, 0, :]
residual = r.numpy().astype("float64")[0]
sigma = np.sqrt(residual.var() + 1e-6)
n = (residual - residual.mean()) / sigma
formula = (np.eye(width) - np.ones((width, width)) / width - np.outer(n, n) / width) / sigma
assert close(measured, formula)
assert np.linalg.matrix_rank(formula, tol=1e-4) == width - 2
assert not close(measured, np.eye(width), tolerance=0.1)

# %% [markdown]
# The effect over a stack depends on how the weights start, which the paper does not say. Below is
# the gradient at the input of each of 12 untrained layers, relative to that at the output. With
# Glorot's weights the paper's order passes on a quarter of it in the middle of the stack, while
# pre-norm, where no norm follows the sums, makes it grow towards the input. If the last matrix of
# each sublayer starts smaller (our default, "depth-scaled"), both stay within 15 %. Without the
# residual sum most of it is lost in the first layer that it passes.


# %%
@keras.saving.register_keras_serializable("notebook")
class NoResidual(layers.PostNorm):
    """`LayerNorm(Dropout(Sublayer(x)))`."""

    def call(self, x, sublayer):
        y, by_product = sublayer(x)
        return self.norm(self.sublayer_dropout(y)), by_product


glorot = {"residual_initialization": "keras_transformer>glorot"}
STACKS = {
    "post-norm, depth-scaled": {"norm": layers.PostNorm},
    "post-norm, Glorot": {"norm": layers.PostNorm, **glorot},
    "pre-norm, depth-scaled": {"norm": layers.PreNorm},
    "pre-norm, Glorot": {"norm": layers.PreNorm, **glorot},
    "no residual sum": {"norm": NoResidual, **glorot},
}


def gradient_norms(count, **choices):
    """Norms of the gradient at the input of each layer, bottom first, divided by that at the output
    of the stack.
    """
    keras.utils.set_random_seed(1)
    encoder = layers.Encoder(count, num_heads=4, d_model=128, d_ff=512, **choices)
    random = np.random.default_rng(0)
    x, direction = (
        tf.constant(random.normal(size=(8, 20, 128)).astype("float32")) for _ in range(2)
    )
    encoder.build(x.shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        states = [x]
        for layer in encoder.layers:
            states.append(layer(states[-1]))
        loss = tf.reduce_sum(encoder.final_norm(states[-1]) * direction)
    gradients = [float(tf.norm(gradient)) for gradient in tape.gradient(loss, states)]
    return [gradient / gradients[-1] for gradient in gradients[:-1]]


LAYERS = 12
norms = {name: gradient_norms(LAYERS, **choices) for name, choices in STACKS.items()}
assert min(norms["post-norm, Glorot"]) < 0.3
assert norms["pre-norm, Glorot"] == sorted(norms["pre-norm, Glorot"], reverse=True)
for order in ("post-norm", "pre-norm"):
    assert np.abs(np.array(norms[f"{order}, depth-scaled"]) - 1).max() < 0.15
assert norms["no residual sum"][-1] < 0.4
series = {name: (list(range(1, LAYERS + 1)), norms[name]) for name in norms}
panel = Panel("norm of the gradient, relative to the output's", "layer", series)
Drawing(functools.partial(charts.draw, [panel]))

# %% [markdown]
# ## 3.4 Embeddings
#
# One matrix serves the source, the target and the projection onto the vocabulary. The embeddings
# are multiplied by sqrt(d_model), the projection is not. With entries of variance 1 / d_model both
# come out with variance 1. By hand: an entry of 0.05 in a model of d_model 16 becomes 0.05 * 4 =
# 0.2.

# %%
embedding = layers.PositionalEmbedding(vocabulary_size=20, d_model=16, encoding=layers.NoEncoding())
embedding(np.array([[4]]))
embedding.table.assign(np.full((20, 16), 0.05))
assert np.allclose(embedding(np.array([[4]])), 0.2)
hidden = np.ones((1, 1, 16), np.float32)
assert np.allclose(embedding(hidden, reverse=True), 16 * 0.05)
assert [weight.shape for weight in model.weights].count((20, 16)) == 1

# %% [markdown]
# ## 3.5 Positions
#
#     PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
#     PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
#
# **Often wrong: the index of the cosine.** Columns 2i and 2i + 1 have the *same* frequency.
# Programs that write 10000^((2i + 1) / d_model) in the second line, or count i in steps of 2 and
# still multiply it by 2, give each column its own frequency.
#
# By hand, d_model = 4, position 1: sin 1 = 0.8415, cos 1 = 0.5403, sin 0.01 = 0.0100, cos 0.01 =
# 0.99995.

# %%
by_hand = layers.sinusoidal_positions(np.arange(2), 4).numpy()[1]
assert np.allclose(by_hand, [0.841471, 0.540302, 0.01, 0.99995], atol=1e-6)


def positions(count, width, paired=True):
    """The table in float64; not `paired`: with the error."""
    column = np.arange(width)
    exponent = column // 2 * 2 if paired else column
    angle = np.arange(count)[:, None] / 10000 ** (exponent / width)
    return np.where(column % 2, np.cos(angle), np.sin(angle))


table = layers.sinusoidal_positions(np.arange(100), 64).numpy()
assert close(table, positions(100, 64), tolerance=1e-6)
wrong = positions(100, 64, paired=False)
assert np.abs(table - wrong).max() > 0.5

# %% [markdown]
# It matters, because the paper wants this: "for any fixed offset k, PE(pos + k) can be represented
# as a linear function of PE(pos)". A sine and a cosine of one frequency turn by an angle; pairs of
# different frequencies do not. So the product of two encodings depends only on the distance of the
# positions; with the error it also depends on the positions themselves.


# %%
def misfit(table, offset):
    """How far the best linear map from PE(pos) to PE(pos + offset) is off, at most."""
    now, later = table[:-offset], table[offset:]
    best = np.linalg.lstsq(now, later, rcond=None)[0]
    return np.abs(now @ best - later).max()


long = positions(400, 64)
long_wrong = positions(400, 64, paired=False)
assert misfit(long, 5) < 1e-9
assert misfit(long_wrong, 5) > 1e-4


def spread(table, offset):
    """How much the product of positions at a distance varies with the place."""
    products = (table[:-offset] * table[offset:]).sum(axis=-1)
    return np.ptp(products)


assert spread(long, 5) < 1e-9
assert spread(long_wrong, 5) > 0.1
maps = [
    Map("the paper's encoding", positions(64, 64), "position", "column"),
    Map(
        "with the error, less the paper's",
        positions(64, 64, paired=False) - positions(64, 64),
        "position",
        "column",
    ),
]
Drawing(functools.partial(position_maps.draw, maps))

# %% [markdown]
# "The wavelengths form a geometric progression from 2 pi to 10000 * 2 pi": the last one is not
# quite reached, because i ends at d_model / 2 - 1. In the base model it is 9,647 * 2 pi.

# %%
longest = 10000 ** ((512 - 2) / 512)
assert round(longest) == 9_647

# %% [markdown]
# ## 4 Why self-attention
#
# Table 1 compares the cost of a layer with the length of the path from one position to another:
#
#     layer            operations   one after the other   longest path
#     self-attention   n^2 d        1                     1
#     recurrent        n d^2        n                     n
#     convolutional    k n d^2      1                     log_k n (dilated)
#     restricted       r n d        1                     n / r
#
# By hand, a sentence of n = 25 pieces in the base model, d = 512: self-attention has 25^2 * 512 =
# 320,000 products, a recurrent layer 25 * 512^2 = 6,553,600, which is d / n = 20.48 times as many.
# They are equal at n = d.

# %%
from benchmarks.paper.table1_layers import PAPER, depth, layers_to_reach, make

assert 25**2 * 512 == 320_000
assert 25 * 512**2 == 20.48 * 320_000

# %% [markdown]
# The longest path is measured here as in `python -m benchmarks.paper.table1`, which also measures
# time and memory: the longest chain of operations in a layer's graph, times the number of layers
# between the first position and the last, found by following the gradient of the last output. The
# curves are relative to 16 positions. The table's log_k n is for dilated kernels, whose gaps grow
# from
# layer to layer; with "contiguous kernels", the text says, it is n / k.

# %%
small = {"width": 8, "num_heads": 2, "radius": 4, "rank": 4, "kernel": 3}
LENGTHS = [16, 32, 64, 128]
between = {}
chains = {}
# A gradient that went through many layers would become 0 in float32.
keras.config.set_dtype_policy("float64")
for name in ("self-attention", "GRU", "convolution", "dilated convolution", "restricted"):
    between[name] = [layers_to_reach(make(name, n, **small), n, 8) for n in LENGTHS]
    in_a_layer = [depth(make(name, n, **small), n, 8) for n in LENGTHS]
    chains[name] = np.multiply(between[name], in_a_layer)
    print(f"{name}, the paper's path {PAPER[name][2]}: {chains[name]}")
keras.config.set_dtype_policy("float32")
assert len(set(chains["self-attention"])) == 1
for name in ("GRU", "convolution", "restricted"):
    assert 6 < chains[name][-1] / chains[name][0] < 11
# k = 3: three layers reach 27 positions, four 81, five 243.
assert between["dilated convolution"] == [3, 4, 4, 5]
series = {f"{name}: {PAPER[name][2]}": (LENGTHS, path / path[0]) for name, path in chains.items()}
Drawing(functools.partial(charts.draw, [Panel("longest path, relative to n = 16", "n", series)]))

# %% [markdown]
# ## Table 3: the parameters of the base model, by hand
#
#     embeddings             V d                                    V = 37,000, d = 512
#     layer of the encoder   4 d^2 + 2 d d_ff + d_ff + d + 2 * 2 d  attention, FFN, two norms
#     layer of the decoder   8 d^2 + 2 d d_ff + d_ff + d + 3 * 2 d  two attentions, FFN, three norms
#
# The paper says 65 million; with its "about 37000 tokens" it is 63.0.

# %%
V = 37_000
d = 512
d_ff = 2048
encoder_layer = 4 * d * d + 2 * d * d_ff + d_ff + d + 2 * 2 * d
decoder_layer = 8 * d * d + 2 * d * d_ff + d_ff + d + 3 * 2 * d
by_hand = V * d + 6 * (encoder_layer + decoder_layer)
base = keras_transformer.Transformer(vocabulary_size=V)
assert base.count_params() == by_hand == 63_045_632
del base

# %% [markdown]
# ## 5.1 The tokens of a batch
#
# "Each training batch contained a set of sentence pairs containing approximately 25000 source
# tokens and 25000 target tokens": pairs of similar length share a batch, and a batch of short pairs
# has more of them.
#
# By hand, batches of 200 tokens a side: a batch has 20 pairs if their sides have 10 tokens each,
# and 10 pairs if they have 20.

# %%
by_length = bucket([[10, 10]] * 100 + [[20, 20]] * 50, batch_tokens=200)
assert by_length.lengths.tolist() == [[10, 10], [20, 20]]
assert by_length.batch_sizes.tolist() == [20, 10]
# Uneven lengths: 25,000 is the mean of both sides, without padding.
sources = draw.lognormal(3.2, 0.5, 20_000)
targets = sources * draw.lognormal(0, 0.2, 20_000)
pair_lengths = np.clip(np.stack([sources, targets], axis=-1).astype(int), 1, 100)
of_pairs = bucket(pair_lengths, batch_tokens=25_000)
pairs_of = np.bincount(of_pairs.bucket_of)
mean_tokens = np.bincount(of_pairs.bucket_of, pair_lengths.mean(axis=1)) / pairs_of
assert np.abs(of_pairs.batch_sizes * mean_tokens / 25_000 - 1).max() < 0.01
print(of_pairs.describe())

# %% [markdown]
# ## 5.3 The learning rate
#
#     lrate = d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)        (3)
#
# By hand, at the end of base's 4,000 steps of warm-up: 1 / sqrt(512 * 4000) = 1 / 1431.1 =
# 0.000699. The first update is step 1. Keras counts the updates that were made before, so our
# schedule adds 1. A schedule that does not add it has a rate of 0 at its first update, or divides
# by 0.

# %%
schedule = keras_transformer.TransformerSchedule(512, warmup_steps=4000)
assert round(float(schedule(3999)), 6) == 0.000699
assert np.isclose(float(schedule(0)), 512**-0.5 * 4000**-1.5)
same = {"name": "transformer", "scale": 1.0, "peak": None, "total_steps": 0}
recipes = {
    "base: d_model 512, warm-up 4,000": {"d_model": 512, "warmup_steps": 4000, **same},
    "warm-up 8,000": {"d_model": 512, "warmup_steps": 8000, **same},
    "big: d_model 1024": {"d_model": 1024, "warmup_steps": 4000, **same},
}
Drawing(functools.partial(charts.draw, [learning_rates(recipes, steps=20_000)]))

# %% [markdown]
# ## 5.4 Label smoothing
#
# The label gets 1 - epsilon, and epsilon is spread over the vocabulary. The best that a model can
# do is to predict exactly these probabilities. Then the loss is their entropy, not 0: with epsilon
# 0.1 and 37,000 pieces, 1.38 nats. "This hurts perplexity, as the model learns to be more unsure".
#
# By hand: the label has probability 0.9 + 0.1 / 37000 = 0.9000027, each other piece 0.0000027. The
# entropy is 0.9 * 0.10536 + 0.1 * ln(370000) = 0.0948 + 0.1 * 12.8213 = 1.377.

# %%
epsilon = 0.1
target = np.full(V, epsilon / V)
target[3] += 1 - epsilon
entropy = -(target * np.log(target)).sum()
assert round(entropy, 3) == 1.377
loss = keras_transformer.LabelSmoothedCrossEntropy(epsilon)
logits = np.log(target).astype("float32")[None, None]
assert abs(float(loss(np.array([[3]]), logits)) - entropy) < 1e-5
# More certain is worse.
sure = np.full(V, -20.0, np.float32)
sure[3] = 20
assert float(loss(np.array([[3]]), sure[None, None])) > entropy + 1

# %% [markdown]
# The smoothed target as a curve: the loss of a model that gives the label the probability p and
# divides 1 - p evenly. Without smoothing it falls to 0 at p = 1; with it the best p is 0.9 or 0.8,
# and a model that is more certain has a higher loss. The minimum of each curve is the entropy of
# its target.

# %%
certain = np.linspace(0.01, 0.999, 200)
# ln p of the label, and of each other piece.
logs = np.log(certain)
log_others = np.log((1 - certain) / (V - 1))
series = {}
for smoothing in (0.0, 0.1, 0.2):
    on_label = 1 - smoothing + smoothing / V
    nats = -on_label * logs - (1 - on_label) * log_others
    series[f"epsilon {smoothing}"] = (100 * certain, nats)
    assert abs(certain[nats.argmin()] - min(on_label, 0.999)) < 0.005
panel = Panel("loss, nats a token", "probability of the label, %", series)
Drawing(functools.partial(charts.draw, [panel]))

# %% [markdown]
# ## 6.1 Averaged checkpoints
#
# "A single model obtained by averaging the last 5 checkpoints": the mean of the weights, entry by
# entry. By hand, three checkpoints of one weight, 1, 2 and 6: 3.

# %%
temporary = tempfile.TemporaryDirectory()
folder = pathlib.Path(temporary.name)
paths = [folder / f"{weight}.npz" for weight in (1, 2, 6)]
for path in paths:
    checkpoint.write_archive(path, {"weights/kernel": np.array([float(path.stem)], np.float32)})
assert averaging.average(paths)["weights/kernel"] == 3
temporary.cleanup()

# %% [markdown]
# ## 6.1 The length penalty
#
#     score(Y) = log P(Y | X) / lp(Y),   lp(Y) = ((5 + |Y|) / 6)^alpha,   alpha = 0.6
#
# By hand: a translation of 1 token has lp 1, one of 7 tokens lp 2^0.6 = 1.516. A longer hypothesis
# with log P = -3 in 7 tokens scores -1.979 and beats one with -2 in 1 token.

# %%
assert float(length_penalty(1, 0.6)) == 1.0
penalty = float(length_penalty(7, 0.6))
assert round(penalty, 3) == 1.516
assert -3 / penalty > -2 / 1.0
lengths = list(range(1, 61))
penalties = {
    f"alpha {alpha}": (lengths, [float(length_penalty(n, alpha)) for n in lengths])
    for alpha in (0.0, 0.6, 1.0)
}
assert set(penalties["alpha 0.0"][1]) == {1.0}
panel = Panel("lp(Y): what log P is divided by", "tokens", penalties)
Drawing(functools.partial(charts.draw, [panel]))

# %%
print("All claims hold.")
