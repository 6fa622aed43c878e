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
# # What the Transformer became
#
# The sequel of the notebook `paper`: four later models, made of the same layers. GPT is the paper's
# decoder without an encoder, BERT its encoder without a decoder, T5 the whole model with other
# positions, and ViT the encoder with patches of an image instead of words. Only a toy is trained.
# Each claim of the text is asserted by a cell: if this page has run to its end, all of them are
# true.

# %%
import functools
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

from keras_transformer.startup import start_tensorflow

# Without what TensorFlow says of the machine.
start_tensorflow()

import keras
import numpy as np
import safetensors.numpy
import sentencepiece
import tensorflow as tf

from keras_transformer import Translator, layers
from keras_transformer.decoding import GreedySearch
from keras_transformer.imports import t5 as of_t5
from keras_transformer.layers.encoder_only import patches
from keras_transformer.models import LanguageModel, MaskedLanguageModel, Transformer
from keras_transformer.models.vision import VisionTransformer
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.visualization import patch_maps
from keras_transformer.visualization.attention_pictures import draw_matrix
from keras_transformer.visualization.picture_file import Drawing
from pipelines import json_files
from pipelines.batches.hidden_pieces import Masking
from pipelines.corpora.spans import cut, restored
from pipelines.special_ids import Marks

keras.utils.set_random_seed(1)
draw = np.random.default_rng(1)

# %% [markdown]
# ## GPT: the decoder alone
#
#     P(y) = P(y_1) P(y_2 | y_1) ... P(y_n | y_1 .. y_(n-1))
#
# (Radford et al. 2018.) With a causal mask each position predicts the next token from those before
# it, all positions in one pass. Changing a token changes nothing before it.

# %%
sizes = {"num_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 2}
gpt = LanguageModel(vocabulary_size=12, norm="pre", activation="gelu", positions="rotary", **sizes)
text = draw.integers(4, 12, (1, 8))
changed = text.copy()
changed[0, 5] = 4 + (changed[0, 5] - 3) % 8
before, after = gpt(text).numpy(), gpt(changed).numpy()
assert np.array_equal(before[:, :5], after[:, :5])
assert not np.array_equal(before[:, 5:], after[:, 5:])

# %% [markdown]
# A toy: count upwards, 4, 5, 6, ... The model learns it in a few seconds, and greedy search
# continues a beginning. Search and cache are the translator's.

# %%
PAD, BOS, EOS = 0, 2, 3
starts = draw.integers(4, 8, 256)
counted = np.stack([np.arange(start, start + 4) for start in starts])
labels = np.pad(counted, [[0, 0], [0, 1]], constant_values=EOS)
read = np.pad(labels[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
gpt.compile(keras.optimizers.Adam(1e-2), LabelSmoothedCrossEntropy(0.0))
gpt.fit(read, labels, batch_size=64, epochs=15, verbose=0)
# Keras warns of the first step, which attends to one position.
warnings.filterwarnings("ignore", "You are using a softmax over axis")
begun = tf.constant([[6, 7], [4, 0]])
continued, _ = GreedySearch()(gpt.stepper(), {}, tf.constant([6, 6]), prefixes=begun)
print(continued[:, 0].numpy())
assert continued[0, 0, :5].numpy().tolist() == [6, 7, 8, 9, EOS]
assert continued[1, 0, :5].numpy().tolist() == [4, 5, 6, 7, EOS]

# %% [markdown]
# What the last layer attends to while it counts: the weights above the diagonal are 0.

# %%
weights = gpt.attention_weights(read[:1])["decoder"][0, -1].numpy().mean(axis=0)
words = ["start", *map(str, read[0, 1:])]
assert not np.triu(weights, 1).any()
Drawing(functools.partial(draw_matrix, words, words, weights))

# %% [markdown]
# ## BERT: the encoder alone
#
# (Devlin et al. 2019.) Without a causal mask each position sees the whole text, so it cannot learn
# to predict the next word. Instead it predicts 15 % of the words: of these 80 % are replaced by the
# mask, 10 % by a random word, and 10 % are left unchanged.

# %%
marks = Marks(first=2, last=3, mask=4, name="<mask>", ordinary=np.arange(5, 1000))
masking = Masking(marks, 1000)
tokens = tf.constant(draw.integers(5, 1000, (500, 100)), tf.int32)
keys = tf.cast(tf.range(500), tf.uint64) * 7919
masked = masking(tokens, keys)
chosen = masked.weights.numpy() == 1
hidden = tf.gather(masked.tokens, masked.places, batch_dims=1).numpy()[chosen]
truth = masked.pieces.numpy()[chosen]
assert chosen.sum() == 500 * 15
shares = [(hidden == marks.mask).mean(), ((hidden != marks.mask) & (hidden != truth)).mean()]
print(f"hidden {shares[0]:.1%}, replaced {shares[1]:.1%}, left {(hidden == truth).mean():.1%}")
assert abs(shares[0] - 0.8) < 0.02
assert abs(shares[1] - 0.1) < 0.02

# %% [markdown]
# **Both sides count.** Changing the last word changes every position of BERT.

# %%
bert = MaskedLanguageModel(vocabulary_size=12, positions="learned", attention_bias=True, **sizes)
tokens = draw.integers(5, 12, (1, 6))
segments = np.zeros_like(tokens)
changed = tokens.copy()
changed[0, -1] = 5 + (changed[0, -1] - 4) % 7
states = [bert.states(tf.constant(ids), tf.constant(segments)).numpy() for ids in (tokens, changed)]
assert (states[0] != states[1]).any(axis=-1).all()

# %% [markdown]
# ## T5: text to text
#
# (Raffel et al. 2020.) The paper's encoder and decoder, with three changes: a learned bias for each
# distance instead of the sinusoids, the norm before each sublayer, and a norm that only divides by
# the root mean square. A tag before the source says which task it is.
#
#     RmsNorm(x) = g x / sqrt(mean(x^2))

# %%
norm = layers.RmsNormalization(1e-6)
x = draw.normal(size=(2, 16)).astype("float32")
y = norm(x).numpy()
assert np.allclose((y.astype("float64") ** 2).mean(axis=-1), 1, atol=1e-4)
# It does not subtract the mean, and does not depend on the scale.
assert np.allclose(norm(3 * x).numpy(), y, atol=1e-5)
assert not np.allclose(norm(x + 1).numpy(), y, atol=0.1)

# %% [markdown]
# Positions are distances: the same words give the same states ten positions later.

# %%
t5 = Transformer(vocabulary_size=40, norm="pre_rms", positions="relative", **sizes)
target = np.array([[BOS, 6]])
source = draw.integers(5, 40, (1, 6))
moved = np.pad(source, [[0, 0], [10, 0]])
logits = [t5((ids, target)).numpy() for ids in (source, moved)]
assert np.allclose(*logits, atol=1e-5)
sinusoidal = Transformer(vocabulary_size=40, **sizes)
assert not np.allclose(*[sinusoidal((ids, target)).numpy() for ids in (source, moved)], atol=1e-3)

# %% [markdown]
# It is pretrained on plain text: spans of words are cut out, and it restores them.

# %%
sentence = "Thank you for inviting me to your party last week ."
both = cut(tf.constant([sentence]), tf.constant([4], tf.uint64))
source, target = (texts.numpy()[0].decode() for texts in both)
print(source, "->", target)
assert restored(source, target) == sentence

# %% [markdown]
# ## Weights that others trained
#
# `import_model` makes a run and a SavedModel of a folder of OPUS-MT, NLLB-200 or T5 (docs,
# pretrained). The folder here is written by this cell, with random weights, so that the page needs
# no download: what it says is checked, its pieces are read, and from then on it is a translator
# like any other.

# %%
temporary = tempfile.TemporaryDirectory()
folder = pathlib.Path(temporary.name, "t5")
folder.mkdir()
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the small dog sees the old cat", "a cat hears the young dog"] * 4),
    model_writer=model,
    vocab_size=40,
    hard_vocab_limit=False,
    pad_id=0,
    eos_id=1,
    unk_id=2,
    bos_id=-1,
    minloglevel=2,
)
(folder / "spiece.model").write_bytes(model.getvalue())
rows = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size() + 100
settings = {"vocab_size": rows, "d_model": 32, "d_kv": 16, "d_ff": 64}
settings |= {"num_layers": 2, "num_heads": 2}
(folder / "config.json").write_text(json.dumps({"model_type": "t5", **settings}))
(folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 100}))
config, _ = json_files.settings(of_t5.Config, settings, "config.json", "")
shapes = {entry.theirs: entry.shape for entry in of_t5.table(config) if entry.theirs}
arrays = {name: draw.normal(0, 0.2, shape).astype("float32") for name, shape in shapes.items()}
safetensors.numpy.save_file(arrays, folder / "model.safetensors")
command = [sys.executable, "-m", "keras_transformer.import_model", f"--from={folder}"]
run = folder.parent / "run"
command += [f"--model_dir={run}", f"--export_dir={folder.parent / 'saved'}"]
print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
lines = ["the dog sees a cat", "the young cat"]
saved = Translator.load(folder.parent / "saved")
assert saved.translate(lines) == Translator.load(run).translate(lines)
temporary.cleanup()

# %% [markdown]
# ## ViT: a picture is worth 16 x 16 words
#
# (Dosovitskiy et al. 2021.) An image is cut into patches of P x P pixels. A linear map makes a
# vector of each, and the encoder reads these like words. An additional token, the class token,
# collects what the class is predicted from.

# %%
vit = VisionTransformer(
    height=8, width=8, channels=1, classes=10, patch_size=2, attention_bias=True, **sizes
)
picture = np.zeros((1, 8, 8, 1), "float32")
picture[0, 1:7, 3:5] = 1
assert vit(picture).shape == (1, 10)
weights = vit.attention_weights(picture)["encoder"][0].numpy()
# 16 patches and the class token.
assert weights.shape == (2, 2, 17, 17)

# %% [markdown]
# Cutting into patches loses nothing: it is a change of order.

# %%
cut_up = np.array(patches(tf.constant(picture), 2))
assert cut_up.shape == (1, 16, 4)
assert cut_up.sum() == picture.sum()
by_hand = picture.reshape(4, 2, 4, 2).transpose(0, 2, 1, 3).reshape(16, 4)
assert np.array_equal(cut_up[0], by_hand)

# %% [markdown]
# What the class token attends to before training, each map in its own scale. Chance decides: each
# head looks at several patches, and another head most at another.

# %%
to_patches = weights[:, :, 0, 1:].reshape(2, 2, 4, 4)
assert to_patches.max() < 1 / 3
assert len({*to_patches.reshape(4, 16).argmax(axis=-1)}) > 1
pixels = np.repeat((255 * picture[0]).astype(np.uint8), 3, axis=-1)
Drawing(functools.partial(patch_maps.draw, pixels, to_patches, "an untrained model"))
