"""How good the translations, or the trees, of a run or a SavedModel are (Vaswani et al. 2017,
sections 6.1 and 6.3), on a split of its corpus or on files.

python -m keras_transformer.evaluate --model=runs/home_assistant_en_de --split=test
python -m keras_transformer.evaluate --model=saved_models/home_assistant_en_de --source_file=a.en
--reference_file=a.de --confidence --baseline_file=other.de
python -m keras_transformer.evaluate --model=runs/parsing_en --reference_file=a.trees
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
    from keras_transformer.runs.task_name import task_of
    from keras_transformer.startup import spread_over_cores
    from keras_transformer.tasks import examination_class
    from keras_transformer.translator.speed_bar import speed_bar
    from keras_transformer.translator.translator import Translator

    model = flags.required_model(FLAGS)
    at_once = spread_over_cores()
    translator = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    description = translator.description
    # What is wrong with the flags is told before anything is translated.
    values = flags.values(FLAGS, "evaluate", "tokenize", "files")
    examination = examination_class(task_of(description))(description, model, values)
    with speed_bar(len(examination.sources)) as report:
        answers = translator.translate(
            examination.sources,
            batch_tokens=FLAGS.batch_tokens,
            batches_at_once=at_once,
            report=report,
        )
    found = examination.score(answers)
    if "warning" in found:
        print(f"warning: {found['warning']}", file=sys.stderr)
    if FLAGS.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print(examination.table(found))


if __name__ == "__main__":
    flags.run(main, GROUPS)
