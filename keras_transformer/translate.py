"""Lines in, as many lines out: `python -m keras_transformer.translate
--model=runs/home_assistant_en_de < lines.en > lines.de`.

Decodes as section 6.1 of Vaswani et al. 2017 says, by beam search with a length penalty, unless
flags say otherwise.
"""

import contextlib
import json
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from keras_transformer import flags
from keras_transformer.startup import spread_over_cores
from keras_transformer.streams import read_lines, write_lines
from keras_transformer.translator.translator import Translator
from pipelines.corpora import text_files

GROUPS = (
    "model_path",
    "search",
    "decoding",
    "seed",
    "precision",
    "batch_tokens",
    "translate",
    "output",
)
# A progress bar for less would be gone before it is read.
MANY_LINES = 500


def main(FLAGS):
    model = flags.required_model(FLAGS)
    _refuse(FLAGS)
    at_once = spread_over_cores()
    translator = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    if FLAGS.stream:
        for line in text_files.decode_lines(sys.stdin.buffer, "standard input"):
            if not write_lines("-", _translate(FLAGS, translator, [line], None, 1, None)):
                break
        return
    lines = read_lines(FLAGS.input)
    prefixes = text_files.read_lines(FLAGS.prefix_file) if FLAGS.prefix_file else None
    if prefixes is not None and len(prefixes) != len(lines):
        raise ValueError(
            f"--prefix_file must have as many lines as the input. Received: {len(prefixes):,} "
            f"and {len(lines):,}."
        )
    with _progress(lines) as report:
        translations = _translate(FLAGS, translator, lines, prefixes, at_once, report)
    write_lines(FLAGS.output, translations)


def _refuse(FLAGS):
    """Flags that make no sense together."""
    if FLAGS.num_hypotheses > 1 and not FLAGS.json:
        raise ValueError(
            f"--num_hypotheses={FLAGS.num_hypotheses} without --json: a line for a line has room "
            "for one translation. Add --json."
        )
    if FLAGS.json and FLAGS.split_sentences:
        raise ValueError(
            "--json and --split_sentences exclude each other: hypotheses and scores belong to "
            "one sentence, not to a whole line."
        )
    if FLAGS.prefix_file and FLAGS.split_sentences:
        raise ValueError(
            "--prefix_file and --split_sentences exclude each other: a prefix belongs to one "
            "sentence."
        )
    if FLAGS.stream and (FLAGS.input != "-" or FLAGS.output != "-" or FLAGS.prefix_file):
        raise ValueError(
            "--stream answers lines of standard input on standard output: leave out --input, "
            "--output and --prefix_file."
        )


def _translate(FLAGS, translator, lines, prefixes, at_once, report):
    """What is written for each line."""
    if not FLAGS.json:
        return translator.translate(
            lines, prefixes, FLAGS.split_sentences, FLAGS.batch_tokens, at_once, report
        )
    details = translator.translate_in_detail(lines, prefixes, FLAGS.batch_tokens, at_once, report)
    return [_as_json(line, hypotheses) for line, hypotheses in zip(lines, details, strict=True)]


def _as_json(line, hypotheses):
    """One line of JSON."""
    found = [
        {
            "translation": one.text,
            "score": round(one.score, 5),
            "log_probability": round(sum(one.log_probabilities), 5),
            "pieces": [
                [piece, round(value, 5)]
                for piece, value in zip(one.pieces, one.log_probabilities, strict=True)
            ],
        }
        for one in hypotheses
    ]
    return json.dumps({"source": line, "hypotheses": found}, ensure_ascii=False)


@contextlib.contextmanager
def _progress(lines):
    """A function that moves a bar on the terminal, with sentences a second; None where there is no
    terminal, or little to do.
    """
    if len(lines) < MANY_LINES or not sys.stderr.isatty():
        yield None
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(lines), speed="")

        def report(done):
            [state] = bar.tasks
            # Split into sentences, a file has more than lines.
            bar.update(task, advance=done, total=max(state.total, state.completed + done))
            bar.update(task, speed=f"{state.completed / max(state.elapsed, 1e-9):.1f} sentences/s")

        yield report


if __name__ == "__main__":
    flags.run(main, GROUPS)
