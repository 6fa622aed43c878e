"""Score a run or a SavedModel by the measures of its task, such as BLEU of translations and F1 of
trees (Vaswani et al. 2017, sections 6.1 and 6.3), on a split of its corpus or on files.

python -m keras_transformer.evaluate --model=runs/home_assistant_en_de --split=test
python -m keras_transformer.evaluate --model=saved_models/home_assistant_en_de --source_file=a.en
--reference_file=a.de --confidence --baseline_file=other.de
python -m keras_transformer.evaluate --model=runs/parsing_en --reference_file=a.trees
"""

import json
import sys

from keras_transformer import flags
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.evaluation.options import Files, ScoringOptions, Tokenizer, TreeScoring
from keras_transformer.flags.of_commands import SEARCHING, DecodeTokens, JsonOutput
from keras_transformer.saved_models.options import Precision

SECTIONS = (*SEARCHING, DecodeTokens, ScoringOptions, TreeScoring, Tokenizer, JsonOutput, Files)


def main(FLAGS):
    from keras_transformer.runs.description import task_of
    from keras_transformer.runs.model_path import description_of
    from keras_transformer.startup import spread_over_cores, start_tensorflow
    from keras_transformer.tasks import task_class

    model = flags.required(FLAGS, "model")
    description = description_of(model)
    # Wrong flags are reported before anything is loaded.
    task = task_of(description)
    flags.refuse_foreign(task, model)
    _refuse(FLAGS)
    # Scores need TensorFlow, whatever the model. Its threads are set before a corpus uses them.
    start_tensorflow()
    at_once = spread_over_cores()
    kind = task_class(task).scorer
    _refuse_search(kind, model)
    values = flags.values(FLAGS, ScoringOptions, TreeScoring, Tokenizer, Files, Precision)
    scorer = kind(description, model, values)
    loading = {"precision": FLAGS.precision, "batch_tokens": FLAGS.decode_tokens}
    loading["options"] = flags.decoding_options(FLAGS)
    numbers = scorer.examine(loading, at_once)
    if "warning" in numbers:
        print(f"warning: {numbers['warning']}", file=sys.stderr)
    if FLAGS.json:
        print(json.dumps(numbers, indent=2, ensure_ascii=False))
    else:
        print(scorer.table(numbers))


def _refuse_search(kind, model):
    if not kind.searches:
        names = flags.of_sections(DecodingOptions, DecodeTokens)
        flags.refuse(names, f"is for searches, and scoring {model} has none")


def _refuse(FLAGS):
    """Refuse flags of the command line that change nothing, whatever the task."""
    if not FLAGS.baseline_file:
        reason = "tests the difference from --baseline_file, which is missing"
        flags.refuse(["significance"], reason)
    if FLAGS.source_file or FLAGS.reference_file:
        reason = "is for the corpus of the model, and --source_file or --reference_file is given"
        flags.refuse(["split"], reason)
    reason = "is for commands that write several translations of a line, and one is scored"
    flags.refuse(["num_hypotheses"], reason)


if __name__ == "__main__":
    flags.run(main, SECTIONS)
