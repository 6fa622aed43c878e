"""What a trained translator must agree with, on real text: `python -m benchmarks.agreement --model=runs/home_assistant_en_de`.

Prints a table: BLEU of greedy search and of beam 4 on the test split; how many sentences are translated the same alone as in batches of
64, by the SavedModel as by the live model, and by the key-value cache as by recomputing every prefix from nothing.
"""

import pathlib
import time

import numpy as np
import tensorflow as tf
from absl import app, flags

from keras_transformer.decoding import DecodingOptions
from keras_transformer.evaluation import bleu
from keras_transformer.serving.model_folder import ModelFolder
from keras_transformer.serving.translation_module import TranslationModule
from keras_transformer.serving.translator import Translator
from pipelines import corpora
from pipelines.vocabulary import BOS, EOS, PAD

EXTRA_LENGTH = 50

MODEL = flags.DEFINE_string("model", "runs/home_assistant_en_de", "A run's folder.")
SAVED_MODEL = flags.DEFINE_string("saved_model", None, "Its SavedModel. Default: saved_models/<name of the run>.")


def same(first, second):
    """How many of two equally long lists agree, in words."""
    return f"{sum(map(str.__eq__, first, second))} of {len(first)}"


def recomputed(model, module, sentence):
    """Greedy translation without a cache: the whole prefix through the whole model for every token."""
    source = module.source_ids(tf.constant([sentence])).to_tensor().numpy()
    target = [BOS]
    for length in range(1, source.shape[1] + EXTRA_LENGTH + 1):
        # One width for all: later positions change nothing, and nothing is compiled anew.
        padded = np.pad(target, (0, source.shape[1] + EXTRA_LENGTH - len(target)))[None].astype("int32")
        logits = np.array(model((source, padded))[0, length - 1])
        logits[[PAD, BOS]] = -np.inf
        target.append(EOS if length == source.shape[1] + EXTRA_LENGTH else int(logits.argmax()))
        if target[-1] == EOS:
            break
    return module.tokenizer.detokenize(tf.constant(target[1:-1], tf.int32)).numpy().decode()


def main(_):
    folder = ModelFolder(MODEL.value)
    test = corpora.load(**folder.read_description()["corpus"]).test
    rows = {}
    outputs = {}
    for name, beam_size in (("greedy", 1), ("beam 4", 4)):
        translator = Translator.load(folder.path, beam_size=beam_size)
        translator.translate(test.sources[:64])
        began = time.perf_counter()
        outputs[name] = translator.translate(test.sources)
        speed = len(test) / (time.perf_counter() - began)
        scores = bleu.score(outputs[name], test.targets)
        rows[f"{name}: BLEU, chrF, sentences/s"] = f"{scores['bleu']}, {scores['chrf']}, {speed:.0f}"
    some = test.sources[:500]
    rows["alone as in batches of 64, beam 4"] = same([translator.translate([line])[0] for line in some], translator.translate(some))
    saved = Translator.load(SAVED_MODEL.value or pathlib.Path("saved_models") / folder.path.resolve().name)
    rows["SavedModel as live, beam 4"] = same(saved.translate(some), outputs["beam 4"][:500])
    model, vocabulary = folder.load()
    module = TranslationModule(model, vocabulary, DecodingOptions(beam_size=1))
    rows["cached as recomputed, greedy"] = same([recomputed(model, module, line) for line in some[:200]], outputs["greedy"][:200])
    for name, value in rows.items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    app.run(main)
