"""Choose beam size and length penalty on the validation split, as Vaswani et al. 2017 did ("chosen
after experimentation on the development set", section 6.1).

python -m keras_transformer.tune --model=runs/home_assistant_en_de --output=search.flags
python -m keras_transformer.translate --model=runs/home_assistant_en_de --flagfile=search.flags
"""

import itertools

from keras_transformer import flags

GROUPS = (
    "model_path",
    "decoding",
    "precision",
    "batch_tokens",
    "tokenize",
    "tune",
    "files",
    "output",
)


def main(FLAGS):
    from keras_transformer.evaluation import tuning
    from keras_transformer.startup import spread_over_cores
    from keras_transformer.translator.held_out_text import held_out_text
    from keras_transformer.translator.translator import Translator

    model = flags.required_model(FLAGS)
    _refuse(FLAGS)
    tried = (
        tuning.beam_sizes_of(FLAGS.beam_sizes),
        tuning.length_penalties_of(FLAGS.length_penalties),
    )
    at_once = spread_over_cores()
    translator = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    _refuse_parser(translator.description, model)
    for size, alpha in itertools.product(*tried):
        translator.check(beam_size=size, length_penalty=alpha)
    files = (FLAGS.source_file, FLAGS.reference_file)
    text = held_out_text(translator.description, model, "valid", *files)
    sources, references = (side[: FLAGS.sentences or None] for side in text)
    _warn(references, FLAGS.tokenize)
    how = {"batch_tokens": FLAGS.batch_tokens, "batches_at_once": at_once}
    grid = _grid(translator, (sources, references), tried, FLAGS.tokenize, how)
    _tell(FLAGS, grid, f"the first {len(sources):,} lines of {files[0] or 'the validation split'}")


def _warn(references, tokenize):
    import sys

    from keras_transformer.evaluation import tokenized_text

    if warning := tokenized_text.warning(references, tokenize):
        print(f"warning: {warning}", file=sys.stderr)


def _grid(translator, text, tried, tokenize, how):
    """BLEU of each search that is tried, under a bar of progress."""
    import functools

    from keras_transformer.evaluation import tuning
    from keras_transformer.translator.speed_bar import speed_bar

    sources, references = text
    beam_sizes, _ = tried
    with speed_bar(len(sources) * len(beam_sizes)) as report:
        translate = functools.partial(
            translator.translate_with_penalties, sources, **how, report=report
        )
        return tuning.score_searches(translate, references, *tried, tokenize)


def _tell(FLAGS, grid, what):
    """Print the table, and write the flags of the best search, with those of decoding that were
    given.
    """
    from keras_transformer.streams import write_lines

    size, alpha, score = grid.best
    print(f"BLEU of {what}\n  {grid.signature}\n\n{grid.table()}\n", flush=True)
    won = {**flags.decoding_options(FLAGS), "beam_size": size, "length_penalty": alpha}
    written = [f"# BLEU {score:.2f} of {what}: {FLAGS.model}", f"#   {grid.signature}"]
    write_lines(FLAGS.output, [*written, *(f"--{name}={value}" for name, value in won.items())])
    if FLAGS.output != "-":
        print(f"The best search, beam {size} and alpha {alpha:g}, is written to {FLAGS.output}.")


def _refuse(FLAGS):
    """Flags of decoding that leave nothing to tune."""
    if FLAGS.samples:
        raise ValueError(
            f"--samples={FLAGS.samples} draws translations without a beam. Leave it out to tune "
            "the search."
        )
    if FLAGS.num_hypotheses > 1:
        raise ValueError(
            f"--num_hypotheses={FLAGS.num_hypotheses}: BLEU is counted of the best translation. "
            "Leave it out."
        )


def _refuse_parser(description, model):
    from keras_transformer.runs.task_name import task_of

    if (task := task_of(description)) != "translation":
        raise ValueError(
            f"tune counts BLEU, and {model} is a model of the task {task}. Compare searches by "
            "evaluate --split=valid with --beam_size and --length_penalty."
        )


if __name__ == "__main__":
    flags.run(main, GROUPS)
