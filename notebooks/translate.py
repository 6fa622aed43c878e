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
# # A translator of your own text
#
# From pairs of sentences to a server that answers, in one page: a vocabulary, `model.fit` with
# callbacks, translations, what the model attends to, an export, and a request over REST. It takes
# about two minutes on two cores.
#
# The text here is made up, so that this page needs no download: German puts the verb in other
# places than English, and its articles depend on the gender of the noun. To use your own text,
# replace the next cell: the rest of the page reads the lists of pairs that it makes.

# %%
import functools
import json
import logging
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request

from keras_transformer.startup import start_tensorflow

# Without what TensorFlow says of the machine.
start_tensorflow()

import keras
import numpy as np

from keras_transformer import (
    LabelSmoothedCrossEntropy,
    Transformer,
    TransformerSchedule,
    Translator,
)
from keras_transformer.evaluation import metrics
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.visualization import charts
from keras_transformer.visualization.attended import Attended
from keras_transformer.visualization.attention_pictures import draw_lines, draw_matrix, rows_of
from keras_transformer.visualization.charts import Panel
from keras_transformer.visualization.picture_file import Drawing
from pipelines.batches import batching, texts
from pipelines.corpora.parallel_text import ParallelText
from pipelines.vocabularies import vocabulary

keras.utils.set_random_seed(1)
logging.getLogger("tensorflow").setLevel(logging.WARNING)

NOUNS = {
    "dog": ("der", "Hund"),
    "gardener": ("der", "Gärtner"),
    "king": ("der", "König"),
    "cat": ("die", "Katze"),
    "teacher": ("die", "Lehrerin"),
    "duck": ("die", "Ente"),
    "child": ("das", "Kind"),
    "horse": ("das", "Pferd"),
    "girl": ("das", "Mädchen"),
}
ADJECTIVES = {"small": "klein", "old": "alt", "young": "jung", "tired": "müd", "clever": "klug"}
VERBS = {"sees": "sieht", "hears": "hört", "finds": "findet", "calls": "ruft", "loves": "liebt"}


def phrase(draw, is_object):
    """A noun with its article and sometimes an adjective, in English and German."""
    noun = draw.choice(list(NOUNS))
    article, german = NOUNS[noun]
    masculine_object = is_object and article == "der"
    words = ["the"], ["den" if masculine_object else article]
    if draw.random() < 0.6:
        adjective = draw.choice(list(ADJECTIVES))
        words[0].append(adjective)
        words[1].append(ADJECTIVES[adjective] + ("en" if masculine_object else "e"))
    return " ".join([*words[0], noun]), " ".join([*words[1], german])


def sentence(draw):
    """A sentence and its translation: plain, with an adverb in front, or a subordinate clause."""
    subject, german_subject = phrase(draw, is_object=False)
    direct_object, german_object = phrase(draw, is_object=True)
    verb = draw.choice(list(VERBS))
    kind = draw.randrange(3)
    english = ("{}", "today {}", "I know that {}")[kind].format(f"{subject} {verb} {direct_object}")
    german = (
        f"{german_subject} {VERBS[verb]} {german_object}",
        f"heute {VERBS[verb]} {german_subject} {german_object}",
        f"ich weiß, dass {german_subject} {german_object} {VERBS[verb]}",
    )[kind]
    return f"{english}.", f"{german}."


draw = random.Random(1)
pairs = list(dict.fromkeys(sentence(draw) for _ in range(6000)))
test, valid, train = (
    ParallelText.from_pairs(part) for part in (pairs[:200], pairs[200:400], pairs[400:])
)
# No test sentence is trained on.
assert not set(test.sources) & {*train.sources, *valid.sources}
print(f"{len(train):,} pairs to train, for example\n  {train.sources[0]}\n  {train.targets[0]}")

# %% [markdown]
# ## Vocabulary and batches
#
# One vocabulary for both languages, learned from the training side only. A batch is Keras' triple
# `(inputs, labels, weights)`; sentences of similar length share one.

# %%
pieces = vocabulary.learn(train.sources + train.targets, size=340)
examples, held_out = (
    texts.tokenize_pairs(side, pieces, max_length=40).examples() for side in (train, valid)
)
batches = batching.training_batches(examples, batch_tokens=512, seed=1)
(sources, targets), labels, weights = next(iter(batches.dataset()))
print(f"{batches.updates_per_epoch} updates an epoch")
print("the decoder reads ", *(pieces.pieces[i] for i in targets[0].numpy()))
print("and is to write   ", *(pieces.pieces[i] for i in labels[0].numpy()))
# What it reads is what it has written, one position later.
assert (targets[:, 1:].numpy() == labels[:, :-1].numpy()).all()

# %% [markdown]
# ## `model.fit`
#
# A Transformer is a functional Keras model: callbacks are Keras' own. This one translates a
# sentence after each epoch. `Translator` takes the model as it is in memory.

# %%
model = Transformer(
    vocabulary_size=pieces.size, num_layers=2, d_model=64, d_ff=128, num_heads=4, dropout=0.1
)
translator = Translator(TranslationModule(model, pieces))
LINE = "I know that the clever dog sees the old cat."


class Translations(keras.callbacks.Callback):
    """Shows how a sentence is translated after each epoch."""

    def on_epoch_end(self, epoch, logs=None):
        [translation] = translator.translate([LINE])
        print(f"epoch {epoch + 1}  loss {logs['loss']:.2f}  {translation}")


schedule = TransformerSchedule(64, warmup_steps=200, scale=0.5)
model.compile(
    keras.optimizers.Adam(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9),
    LabelSmoothedCrossEntropy(),
    jit_compile=False,
)
history = model.fit(
    batches.dataset(),
    steps_per_epoch=batches.updates_per_epoch,
    epochs=5,
    shuffle=False,
    validation_data=batching.evaluation_batches(held_out, batch_tokens=2048),
    callbacks=[
        Translations(),
        keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True),
    ],
    verbose=0,
).history

# %% [markdown]
# With label smoothing the loss cannot fall below the entropy of the smoothed labels. Both losses
# end just above it: there is little left to learn.

# %%
smoothed = np.full(pieces.size, 0.1 / pieces.size)
smoothed[0] += 0.9
floor = -(smoothed * np.log(smoothed)).sum()
print(f"floor {floor:.3f}, losses {history['loss'][-1]:.3f} and {history['val_loss'][-1]:.3f}")
for name in ("loss", "val_loss"):
    assert floor < history[name][-1] < floor + 0.1
epochs = list(range(1, len(history["loss"]) + 1))
series = {"training": (epochs, history["loss"]), "validation": (epochs, history["val_loss"])}
Drawing(functools.partial(charts.draw, [Panel("loss, nats a token", "epoch", series)]))

# %% [markdown]
# ## Translate
#
# Beam search with the paper's length penalty is the default. Scored on sentences that were held
# out:

# %%
translated = translator.translate(test.sources)
right = sum(ours == theirs for ours, theirs in zip(translated, test.targets, strict=True))
bleu = metrics.score(translated, test.targets)["bleu"]
print(f"{right} of {len(test)} exactly right, BLEU {bleu}")
assert right > 0.9 * len(test)

# %% [markdown]
# `score` gives log P of given translations. With a wrong article it is far lower.

# %%
logs = translator.score(
    [LINE] * 2,
    [
        "ich weiß, dass der kluge Hund die alte Katze sieht.",
        "ich weiß, dass den kluge Hund die alte Katze sieht.",
    ],
)
for log_probability, tokens in logs:
    print(f"log P {log_probability:.2f} of {tokens} tokens")
assert logs[0][0] > logs[1][0] + 1

# %% [markdown]
# ## What it attends to
#
# The German verb is at the end. While the decoder writes it, at least one of its 8 heads attends
# most to the English verb; the mean of the first layer's heads, below, is less sharp.

# %%
[translation] = translator.translate([LINE])
attention = translator.attention(LINE, translation)
cross = Attended.of(attention, "cross")
mean = cross.weights[0].mean(axis=0)
verb = cross.rows.index("sieht.")
most = [cross.columns[column] for column in cross.weights[:, :, verb].argmax(axis=-1).ravel()]
print("at sieht., the heads look most at:", *most)
assert "sees" in most
Drawing(functools.partial(draw_matrix, cross.columns, cross.rows, mean))

# %% [markdown]
# What the English verb attends to in the encoder, in two heads of the first layer:

# %%
encoder = Attended.of(attention, "encoder")
rows = rows_of(encoder, "sees")
Drawing(functools.partial(draw_lines, encoder, 0, [0, 1], rows))

# %% [markdown]
# ## Export
#
# A SavedModel takes strings and gives strings; vocabulary and search are in it. It is written only
# if a fresh process, without our packages, translates with it as the model here does. The folder
# here goes with the page: name one of your own to keep it.

# %%
temporary = tempfile.TemporaryDirectory()
folder = pathlib.Path(temporary.name)
module = TranslationModule(model, pieces)
description = {
    "task": "translation",
    "hyperparameters": model.hyperparameters.as_dict(),
    "corpus": {"name": "made up", "source_language": "en", "target_language": "de"},
}
version = export(module, folder / "translator", description, test.sources)
print(*sorted(path.name for path in version.iterdir()))
assert Translator.load(version).translate(test.sources[:20]) == translated[:20]

# %% [markdown]
# ## A request over REST
#
# The server has TF Serving's URLs and JSON, so that TF Serving can replace it. It prints JSON
# lines; one of them gives its address.

# %%
command = [sys.executable, "-m", "keras_transformer.serve", "--rest_api_port=0"]
server = subprocess.Popen(
    [*command, f"--model_base_path={folder / 'translator'}"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
)
events = (json.loads(line) for line in server.stderr)
url = next(event["url"] for event in events if event["event"] == "serving")


def ask(body, name="translator"):
    """What the server answers to a request."""
    request = urllib.request.Request(
        f"{url}/v1/models/{name}:predict", json.dumps(body).encode("utf-8")
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


try:
    answered = ask({"instances": test.sources[:8]})["predictions"]
    several = ask(
        {
            "signature_name": "translate",
            "instances": [{"text": LINE, "beam_size": 4, "num_hypotheses": 3}],
        }
    )
finally:
    server.terminate()
    server.wait()
temporary.cleanup()
assert answered == translated[:8]
print(json.dumps(several, indent=1, ensure_ascii=False))
