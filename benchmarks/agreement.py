"""What a trained translator must agree with, on real text: `python -m benchmarks.agreement
--model=runs/home_assistant_en_de`.

Prints a table: BLEU of greedy search and of beam 4 on the test split; how many sentences are
translated the same alone as in batches, in small batches as in large ones, by the SavedModel as by
the live model, by the key-value cache as by recomputing every prefix from nothing, and by
CTranslate2 with the same weights.
"""

import pathlib
import tempfile
import time

import ctranslate2
import numpy as np
import sentencepiece
import tensorflow as tf
from absl import app, flags

from keras_transformer.artifacts import ctranslate2_model
from keras_transformer.decoding import DecodingOptions
from keras_transformer.evaluation import bleu
from keras_transformer.runs.folder import RunFolder
from keras_transformer.startup import spread_over_cores
from keras_transformer.translator.translation_module import TranslationModule
from keras_transformer.translator.translator import Translator
from pipelines import corpora
from pipelines.special_ids import BOS, EOS, PAD

EXTRA_LENGTH = 50
TIE = 1e-4
MOST_TOKENS = 200

MODEL = flags.DEFINE_string("model", "runs/home_assistant_en_de", "A run's folder.")
SAVED_MODEL = flags.DEFINE_string(
    "saved_model", None, "Its SavedModel. Default: saved_models/<name of the run>."
)


def same(first, second):
    """How many of two equally long lists agree, in words."""
    return f"{sum(map(str.__eq__, first, second))} of {len(first)}"


def recomputed(model, module, sentence):
    """Greedy translation without a cache: the whole prefix through the whole model for every token."""
    source = module.source_ids(tf.constant([sentence])).to_tensor().numpy()
    target = [BOS]
    for length in range(1, source.shape[1] + EXTRA_LENGTH + 1):
        # One width for all: later positions change nothing, and nothing is compiled anew.
        padded = np.pad(target, (0, source.shape[1] + EXTRA_LENGTH - len(target)))[None].astype(
            "int32"
        )
        logits = np.array(model((source, padded))[0, length - 1])
        logits[[PAD, BOS]] = -np.inf
        target.append(EOS if length == source.shape[1] + EXTRA_LENGTH else int(logits.argmax()))
        if target[-1] == EOS:
            break
    return module.tokenizer.detokenize(tf.constant(target[1:-1], tf.int32)).numpy().decode()


def second_engine(folder, sources, references):
    """CTranslate2 of the same weights. It normalizes by |Y|^alpha, we by ((5 + |Y|) / 6)^alpha:
    alpha 0 is the same in both.
    """
    ours = Translator.load(folder.path, length_penalty=0.0, max_length=MOST_TOKENS)
    with tempfile.TemporaryDirectory() as temporary:
        converted = ctranslate2_model.convert(
            *folder.load(), pathlib.Path(temporary) / "model", folder.read_description()
        )
        engine = ctranslate2.Translator(str(converted), compute_type="float32")
        processor = sentencepiece.SentencePieceProcessor(
            model_file=str(converted / "vocabulary.model")
        )
    pieces = [processor.encode(line, out_type=str) for line in sources]
    scored = engine.score_batch(
        pieces, [processor.encode(line, out_type=str) for line in references]
    )
    given = [log_probability for log_probability, _ in ours.score(sources, references)]
    apart = max(abs(sum(one.log_probs) - other) for one, other in zip(scored, given, strict=True))
    results = engine.translate_batch(
        pieces, beam_size=4, length_penalty=0, max_decoding_length=MOST_TOKENS
    )
    theirs = [processor.decode(result.hypotheses[0]) for result in results]
    found = ours.translate(sources)
    different = [number for number in range(len(sources)) if found[number] != theirs[number]]
    lines = [sources[number] for number in different]
    gains = [
        one - other
        for (one, _), (other, _) in zip(
            ours.score(lines, [found[number] for number in different]),
            ours.score(lines, [theirs[number] for number in different]),
            strict=True,
        )
    ]
    ties = sum(abs(gain) < TIE for gain in gains)
    better = sum(gain >= TIE for gain in gains)
    return {
        "largest difference of log P(reference) from CTranslate2's": f"{apart:.1e}",
        "beam 4 as CTranslate2, alpha 0": same(found, theirs),
        "of the others: ties, ours is likelier, CTranslate2's is": f"{ties}, {better}, "
        f"{len(gains) - ties - better}",
    }


def main(_):
    at_once = spread_over_cores()
    folder = RunFolder(MODEL.value)
    test = corpora.load(**folder.read_description()["corpus"]).test
    rows = {}
    outputs = {}
    for name, beam_size in (("greedy", 1), ("beam 4", 4)):
        translator = Translator.load(folder.path, beam_size=beam_size)
        translator.translate(test.sources[:64])
        began = time.perf_counter()
        outputs[name] = translator.translate(test.sources, batches_at_once=at_once)
        speed = len(test) / (time.perf_counter() - began)
        scores = bleu.score(outputs[name], test.targets)
        rows[f"{name}: BLEU, chrF, sentences/s"] = (
            f"{scores['bleu']}, {scores['chrf']}, {speed:.0f}"
        )
    some = test.sources[:1000]
    together = outputs["beam 4"][: len(some)]
    rows["alone as in batches, beam 4"] = same(
        [translator.translate([line])[0] for line in some], together
    )
    rows["in small batches as in large ones, beam 4"] = same(
        translator.translate(some, batch_tokens=100), together
    )
    saved = Translator.load(
        SAVED_MODEL.value or pathlib.Path("saved_models") / folder.path.resolve().name
    )
    rows["SavedModel as live, beam 4"] = same(saved.translate(some), together)
    model, vocabulary = folder.load()
    module = TranslationModule(model, vocabulary, DecodingOptions(beam_size=1))
    rows["cached as recomputed, greedy"] = same(
        [recomputed(model, module, line) for line in some[:200]], outputs["greedy"][:200]
    )
    rows |= second_engine(folder, test.sources[:1000], test.targets[:1000])
    for name, value in rows.items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    app.run(main)
