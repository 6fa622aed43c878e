"""Check on real text that a translator agrees with itself and with a second engine:
`python -m benchmarks.peers.agreement --model=runs/home_assistant_en_de`.

The table shows BLEU of greedy search and of beam 4 on the test split. It then counts the sentences
that are translated the same: alone and in batches; in small and in large batches; by the SavedModel
and by the live model; with the key-value cache and by recomputing every prefix; by us and by
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

from keras_transformer.decoding import DecodingOptions
from keras_transformer.evaluation import bleu
from keras_transformer.evaluation.metrics import tokenizer_of
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.startup import spread_over_cores, start_tensorflow
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import corpora
from pipelines.special_ids import BOS, EOS, PAD
from pipelines.vocabularies.protected_spans import ProtectedSpans, TextMarks

EXTRA_LENGTH = 50
TIE = 1e-4
MOST_TOKENS = 200

MODEL = flags.DEFINE_string("model", "runs/home_assistant_en_de", "A run's folder.")
SAVED_MODEL = flags.DEFINE_string(
    "saved_model", None, "Its SavedModel. Default: saved_models/<name of the run>."
)


def as_they_stand(pairs, protected):
    """The pairs without protected spans and not in capitals alone, which are all that another
    engine, and a model without its search, read as we do.
    """
    if protected is None:
        return pairs
    marks = TextMarks(protected)
    return [pair for pair in pairs if all(marks.marked(line).text == line for line in pair)]


def same(first, second):
    """Count the equal entries of two equally long lists, in words."""
    return f"{sum(map(str.__eq__, first, second))} of {len(first)}"


def recomputed(model, module, sentence):
    """Translate greedily without a cache: each token takes the whole prefix through the model."""
    source = module.source_ids(tf.constant([sentence])).to_tensor().numpy()
    target = [BOS]
    for length in range(1, source.shape[1] + EXTRA_LENGTH + 1):
        # All prefixes have one width: later positions change nothing, and one graph serves all.
        padded = np.pad(target, (0, source.shape[1] + EXTRA_LENGTH - len(target)))[None].astype(
            "int32"
        )
        logits = np.array(model((source, padded))[0, length - 1])
        logits[[PAD, BOS]] = -np.inf
        target.append(EOS if length == source.shape[1] + EXTRA_LENGTH else int(logits.argmax()))
        if target[-1] == EOS:
            break
    return module.target_tokenizer.detokenize(tf.constant(target[1:-1], tf.int32)).numpy().decode()


def second_engine(folder, sources, references):
    """Compare with CTranslate2 on the same weights. It divides by |Y|^alpha, we by
    ((5 + |Y|) / 6)^alpha, so only alpha = 0 is the same search.
    """
    ours = Translator.load(folder.path, length_penalty=0.0, max_length=MOST_TOKENS)
    model, vocabulary = load_trained(folder)
    with tempfile.TemporaryDirectory() as temporary:
        converted = ctranslate2_model.convert(
            model, vocabulary, pathlib.Path(temporary) / "model", folder.read_description()
        )
        engine = ctranslate2.Translator(str(converted), compute_type="float32")
    reader, writer = (
        sentencepiece.SentencePieceProcessor(model_proto=side.model)
        for side in (vocabulary.source, vocabulary.target)
    )
    pieces = reader.encode(list(sources), out_type=str)
    scored = engine.score_batch(pieces, writer.encode(list(references), out_type=str))
    given = [log_probability for log_probability, _ in ours.score(sources, references)]
    apart = max(abs(sum(one.log_probs) - other) for one, other in zip(scored, given, strict=True))
    results = engine.translate_batch(
        pieces, beam_size=4, length_penalty=0, max_decoding_length=MOST_TOKENS
    )
    theirs = [writer.decode(result.hypotheses[0]) for result in results]
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
        "of the others: ties, ours is likelier, CTranslate2's is likelier": f"{ties}, {better}, "
        f"{len(gains) - ties - better}",
    }


def quality(folder, test, at_once, tokenize):
    """Translate the test split with greedy search and with beam 4, so many batches at once, and
    count BLEU with a tokenizer.

    Returns:
        (translations by "greedy" and "beam 4", rows of the table).
    """
    outputs = {}
    rows = {}
    for name, beam_size in (("greedy", 1), ("beam 4", 4)):
        translator = Translator.load(folder.path, beam_size=beam_size)
        translator.translate(test.sources[:64])
        began = time.perf_counter()
        outputs[name] = translator.translate(test.sources, batches_at_once=at_once)
        speed = len(test) / (time.perf_counter() - began)
        scores = bleu.score(outputs[name], test.targets, tokenize)
        rows[f"{name}: BLEU, chrF, sentences/s"] = (
            f"{scores['bleu']}, {scores['chrf']}, {speed:.0f}"
        )
    return outputs, rows


def with_itself(folder, sources, outputs, plain):
    """Compare the translations with those that other ways to the same model give: rows. `plain` has
    the greedy translations of some sources that stand as they are.
    """
    translator = Translator.load(folder.path, beam_size=4)
    saved = Translator.load(
        SAVED_MODEL.value or pathlib.Path("saved_models") / folder.path.resolve().name
    )
    together = outputs[: len(sources)]
    alone = [translator.translate([line])[0] for line in sources]
    model, vocabulary = load_trained(folder)
    module = TranslationModule(model, vocabulary, DecodingOptions(beam_size=1))
    greedy = [recomputed(model, module, line) for line in plain]
    return {
        "alone as in batches, beam 4": same(alone, together),
        "in small batches as in large ones, beam 4": same(
            translator.translate(sources, batch_tokens=100), together
        ),
        "SavedModel as live, beam 4": same(saved.translate(sources), together),
        "cached as recomputed, greedy": same(greedy, [*plain.values()]),
    }


def main(_):
    start_tensorflow()
    # Before a corpus is loaded, which may compute something.
    at_once = spread_over_cores()
    folder = RunFolder(MODEL.value)
    corpus = corpora.load(**folder.read_description()["corpus"])
    test = corpus.test
    pairs = [*zip(test.sources, test.targets, strict=True)]
    pairs = as_they_stand(pairs, ProtectedSpans.load(folder.path))
    sources, targets = zip(*pairs[:1000], strict=True)
    outputs, rows = quality(folder, test, at_once, tokenizer_of(corpus.target_language))
    greedy = dict(zip(test.sources, outputs["greedy"], strict=True))
    plain = {line: greedy[line] for line in sources[:200]}
    rows |= with_itself(folder, test.sources[:1000], outputs["beam 4"], plain)
    rows |= second_engine(folder, sources, targets)
    for name, value in rows.items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    app.run(main)
