"""How good the translations of a run or a SavedModel are (Vaswani et al. 2017, section 6.1), on a
split of its corpus or on two files.

python -m keras_transformer.evaluate --model=runs/home_assistant_en_de --split=test
python -m keras_transformer.evaluate --model=saved_models/home_assistant_en_de --source_file=a.en
--reference_file=a.de --confidence --baseline_file=other.de
"""

import json
import sys

from keras_transformer import flags

GROUPS = (
    "model_path",
    "search",
    "decoding",
    "seed",
    "precision",
    "batch_tokens",
    "evaluate",
    "tokenize",
    "json",
    "files",
)


def main(FLAGS):
    from keras_transformer.evaluation import metrics, tokenized_text
    from keras_transformer.startup import spread_over_cores
    from keras_transformer.translator.held_out_text import held_out_text
    from keras_transformer.translator.speed_bar import speed_bar
    from keras_transformer.translator.translator import Translator

    model = flags.required_model(FLAGS)
    at_once = spread_over_cores()
    translator = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    files = (FLAGS.source_file, FLAGS.reference_file)
    sources, references = held_out_text(translator.description, model, FLAGS.split, *files)
    # What is wrong with the flags is told before anything is translated.
    language = translator.description.get("corpus", {}).get("target_language", "")
    chosen = (FLAGS.metrics, FLAGS.tokenize, language)
    baseline = _read_baseline(FLAGS.baseline_file, references)
    measured = metrics.choose(*chosen)
    with speed_bar(len(sources)) as report:
        translations = translator.translate(
            sources, batch_tokens=FLAGS.batch_tokens, batches_at_once=at_once, report=report
        )
    found = {
        "sentences": len(sources),
        "scores": metrics.measure(measured, translations, references, FLAGS.confidence),
    }
    if baseline:
        test = (metrics.choose(*chosen), baseline, translations, references)
        found["comparison"] = _compare(FLAGS, *test)
    if warning := tokenized_text.warning(references, FLAGS.tokenize):
        found["warning"] = warning
    _print(found, FLAGS.json)


def _read_baseline(name, references):
    from pipelines.corpora import line_files

    if not name:
        return None
    lines = line_files.read_lines(name)
    if len(lines) != len(references):
        raise ValueError(
            f"--baseline_file must have a line for each reference. Received: {name} with "
            f"{len(lines):,} lines, and {len(references):,} references. Translate the same text."
        )
    return lines


def _compare(FLAGS, *systems):
    from keras_transformer.evaluation.significance import compare

    told = {"baseline": FLAGS.baseline_file, "test": FLAGS.significance}
    return {**told, "scores": compare(*systems, FLAGS.significance)}


def _print(found, as_json):
    from keras_transformer.evaluation import table

    if "warning" in found:
        print(f"warning: {found['warning']}", file=sys.stderr)
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    print(f"{found['sentences']:,} sentences\n{table.of_scores(found['scores'])}")
    if comparison := found.get("comparison"):
        told = (comparison["scores"], comparison["baseline"], comparison["test"])
        print(f"\n{table.of_comparison(*told)}")


if __name__ == "__main__":
    flags.run(main, GROUPS)
