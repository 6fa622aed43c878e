"""BLEU of a run or a SavedModel (Vaswani et al. 2017, section 6.1), on a split of its corpus or on
two files.

python -m keras_transformer.evaluate --model=runs/home_assistant_en_de --split=test
python -m keras_transformer.evaluate --model=saved_models/home_assistant_en_de --source_file=a.en
--reference_file=a.de
"""

import json

from keras_transformer import flags

GROUPS = (
    "model_path",
    "search",
    "decoding",
    "seed",
    "precision",
    "batch_tokens",
    "evaluate",
    "files",
)


def main(FLAGS):
    from keras_transformer.evaluation import bleu
    from keras_transformer.startup import spread_over_cores
    from keras_transformer.translator.translator import Translator

    model = flags.required_model(FLAGS)
    at_once = spread_over_cores()
    translator = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    sources, references = _text(FLAGS, translator)
    translations = translator.translate(
        sources, batch_tokens=FLAGS.batch_tokens, batches_at_once=at_once
    )
    print(json.dumps(bleu.score(translations, references), indent=2))


def _text(FLAGS, translator):
    """Sources and references: of two files, or of a split of the corpus."""
    from pipelines import corpora
    from pipelines.corpora import line_files

    files = (FLAGS.source_file, FLAGS.reference_file)
    if any(files):
        if not all(files):
            raise ValueError(
                "--source_file and --reference_file go together: pass both, or neither for --split."
            )
        return line_files.read_aligned(*files)
    if "corpus" not in translator.description:
        raise ValueError(
            f"{FLAGS.model} does not say what it was trained on: pass --source_file and "
            "--reference_file."
        )
    text = getattr(corpora.load(**translator.description["corpus"]), FLAGS.split)
    if not isinstance(text, corpora.ParallelText):
        raise ValueError(
            "--split=train of a corpus of records is ids, no text. Choose valid or test, or pass "
            "--source_file and --reference_file."
        )
    return text.sources, text.targets


if __name__ == "__main__":
    flags.run(main, GROUPS)
