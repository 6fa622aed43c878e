"""Choose beam size and length penalty on the validation split, as Vaswani et al. 2017 did ("chosen
after experimentation on the development set", section 6.1; for a parser section 6.3).

python -m keras_transformer.tune --model=runs/home_assistant_en_de --output=search.flags
python -m keras_transformer.translate --model=runs/home_assistant_en_de --flagfile=search.flags
"""

import functools
import itertools
import sys

from keras_transformer import flags
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.evaluation import options
from keras_transformer.evaluation.options import Files
from keras_transformer.flags.of_commands import DecodeTokens, ModelToUse, Output
from keras_transformer.saved_models.options import Precision
from pipelines.options import like, settings

# What is tuned, greedy search, samples, and further translations, which nothing scores.
UNUSED = ("beam_size", "length_penalty", "blockwise", "num_hypotheses")
UNUSED += ("samples", "temperature", "top_k", "top_p")
LARGEST_BEAM = settings(DecodingOptions)["beam_size"].setting.at_most
TUNED_SEARCH = like(DecodingOptions, without=UNUSED)
TUNING = (options.Tokenizer, options.TuningOptions)
SECTIONS = (ModelToUse, TUNED_SEARCH, Precision, DecodeTokens, *TUNING, Files, Output)


def main(FLAGS):
    from keras_transformer.evaluation import tuning
    from keras_transformer.inference.translator import Translator
    from keras_transformer.runs.description import task_of
    from keras_transformer.runs.model_path import description_of
    from keras_transformer.startup import spread_over_cores, start_tensorflow

    model = flags.required(FLAGS, "model")
    tried = (
        tuning.beam_sizes_of(FLAGS.beam_sizes, LARGEST_BEAM),
        tuning.length_penalties_of(FLAGS.length_penalties),
    )
    tuning.refuse_one_hypothesis(FLAGS.coverage_penalty, tried[0])
    flags.require_output(FLAGS)
    flags.refuse_foreign(task_of(description_of(model)), model)
    # Scores need TensorFlow, whatever the model. Its threads are set before a corpus uses them.
    start_tensorflow()
    at_once = spread_over_cores()
    scorer = _scorer(FLAGS, model)
    translator = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    for size, alpha in itertools.product(*tried):
        translator.check(beam_size=size, length_penalty=alpha)
    if warning := scorer.warning():
        print(f"warning: {warning}", file=sys.stderr)
    batching = {"batch_tokens": FLAGS.decode_tokens, "batches_at_once": at_once}
    grid = _grid(translator, scorer, tried, batching)
    origin = FLAGS.source_file or FLAGS.reference_file or "the validation split"
    text = f"the first {len(scorer.sources):,} lines of {origin}"
    _write_best(FLAGS, grid, scorer.measure, text)


def _scorer(FLAGS, model):
    """Return the scorer of `evaluate` for the first --sentences of the validation split."""
    from keras_transformer.tasks.score import validation_of

    scorer = validation_of(model, flags.values(FLAGS, options.Tokenizer, Files), "tune")
    if FLAGS.sentences:
        scorer.keep_first(FLAGS.sentences)
    return scorer


def _grid(translator, scorer, tried, batching):
    """Score each search that is tried, under a progress bar."""
    from keras_transformer.evaluation import tuning
    from keras_transformer.inference.line_batches import speed_bar

    with speed_bar(len(scorer.sources) * len(tried[0])) as report:
        translate = functools.partial(
            translator.translate_with_penalties, scorer.sources, **batching, report=report
        )
        return tuning.score_searches(translate, scorer.quality, *tried)


def _write_best(FLAGS, grid, measure, text):
    """Print the table, and write the decoding flags of this command with the best search's."""
    from keras_transformer.streams import write_lines

    size, alpha, score = grid.best
    print(f"{measure}\n  of {text}\n\n{grid.table()}\n", flush=True)
    best = {**flags.decoding_options(FLAGS), "beam_size": size, "length_penalty": alpha}
    comments = [f"# {score:.2f} of {text}: {FLAGS.model}", f"#   {measure}"]
    write_lines(FLAGS.output, [*comments, *(f"--{name}={value}" for name, value in best.items())])
    if FLAGS.output != "-":
        print(f"The best search, beam {size} and alpha {alpha:g}, is written to {FLAGS.output}.")


if __name__ == "__main__":
    flags.run(main, SECTIONS)
