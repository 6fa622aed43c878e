"""Check on real text that a translator agrees with itself and with a second engine:
`python -m benchmarks.peers.agreement --model=runs/home_assistant_en_de`.

The table shows BLEU of greedy search and of beam 4 on the test split. It then counts the sentences
that are translated the same: alone and in batches; in small and in large batches; by the SavedModel
and by the live model; by us and by CTranslate2 with the same weights.
"""

import pathlib
import tempfile

import ctranslate2
import sentencepiece
from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import metrics
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.startup import spread_over_cores, start_tensorflow
from pipelines import corpora
from pipelines.vocabularies.protected_spans import ProtectedSpans, TextMarks

MOST = 1000
TIE = 1e-4
MOST_TOKENS = 200

MODEL = flags.DEFINE_string("model", "runs/home_assistant_en_de", "A run's folder.")
SAVED_MODEL = flags.DEFINE_string(
    "saved_model", None, "Its SavedModel. Default: saved_models/<name of the run>."
)


def as_they_stand(pairs, protected):
    """The pairs without protected spans and not in capitals alone, which are all that another
    engine reads as we do.
    """
    if protected is None:
        return pairs
    marks = TextMarks(protected)
    return [pair for pair in pairs if all(marks.marked(line).text == line for line in pair)]


def same(first, second):
    """Count the equal entries of two equally long lists, in words."""
    return f"{sum(map(str.__eq__, first, second))} of {len(first)}"


def second_engine(folder, sources, references):
    """Compare with CTranslate2 on the same weights. It divides by |Y|^alpha, we by
    ((5 + |Y|) / 6)^alpha, so only alpha = 0 is the same search.
    """
    translator = Translator.load(folder.path, length_penalty=0.0, max_length=MOST_TOKENS)
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
    log_probabilities = zip(scored, translator.score(sources, references), strict=True)
    apart = max(abs(sum(their.log_probs) - our) for their, (our, _) in log_probabilities)
    results = engine.translate_batch(
        pieces, beam_size=4, length_penalty=0, max_decoding_length=MOST_TOKENS
    )
    theirs = [writer.decode(result.hypotheses[0]) for result in results]
    ours = translator.translate(sources)
    different = [number for number in range(len(sources)) if ours[number] != theirs[number]]
    lines = [sources[number] for number in different]
    both = [translator.score(lines, [texts[n] for n in different]) for texts in (ours, theirs)]
    gains = [our - their for (our, _), (their, _) in zip(*both, strict=True)]
    ties = sum(abs(gain) < TIE for gain in gains)
    better = sum(gain >= TIE for gain in gains)
    return {
        "largest difference of log P(reference) from CTranslate2's": f"{apart:.1e}",
        "beam 4 as CTranslate2, alpha 0": same(ours, theirs),
        "of the others: ties, ours is likelier, CTranslate2's is likelier": f"{ties}, {better}, "
        f"{len(gains) - ties - better}",
    }


def with_itself(folder, translator, sources, together):
    """Compare the translations with those of other ways to call the same model. Returns rows."""
    path = SAVED_MODEL.value or pathlib.Path("saved_models") / folder.path.resolve().name
    ways = {
        "alone as in batches": [translator.translate([line])[0] for line in sources],
        "in small batches as in large ones": translator.translate(sources, batch_tokens=100),
        "SavedModel as live": Translator.load(path).translate(sources),
    }
    return {f"{name}, beam 4": same(texts, together) for name, texts in ways.items()}


def main(_):
    start_tensorflow()
    # Before a corpus is loaded, which may compute something.
    at_once = spread_over_cores()
    folder = RunFolder(MODEL.value)
    corpus = corpora.load(**folder.read_description()["corpus"])
    test = corpus.test
    rows = {}
    for name, beam_size in (("greedy", 1), ("beam 4", 4)):
        translator = Translator.load(folder.path, beam_size=beam_size)
        translations = translator.translate(test.sources, batches_at_once=at_once)
        tokenizer = metrics.tokenizer_of(corpus.target_language)
        scores = metrics.score(translations, test.targets, tokenizer)
        rows[f"{name}: BLEU, chrF"] = f"{scores['bleu']}, {scores['chrf']}"
    rows |= with_itself(folder, translator, test.sources[:MOST], translations[:MOST])
    pairs = [*zip(test.sources, test.targets, strict=True)]
    pairs = as_they_stand(pairs, ProtectedSpans.load(folder.path))
    rows |= second_engine(folder, *zip(*pairs[:MOST], strict=True))
    print_table(["what", "is the same, of how many"], rows.items())


if __name__ == "__main__":
    app.run(main)
