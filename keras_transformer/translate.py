"""Lines in, as many lines out: `python -m keras_transformer.translate --model=runs/home_assistant_en_de < lines.en > lines.de`.

Decodes as section 6.1 of Vaswani et al. 2017 says: beam search with a length penalty.
"""

import contextlib
import os
import pathlib
import sys

from keras_transformer import flags
from keras_transformer.serving.translator import Translator, spread_over_cores
from pipelines.corpora import text_files

GROUPS = ("model_path", "search", "translate", "output")


def main(FLAGS):
    model, at_once = flags.required_model(FLAGS), spread_over_cores()
    translator = Translator.load(model, FLAGS.beam_size, FLAGS.length_penalty)
    write_lines(FLAGS.output, translator.translate(read_lines(FLAGS.input), batches_at_once=at_once))


def read_lines(name):
    """The lines of a file, or of standard input for "-".

    Raises:
        ValueError: if a line is not UTF-8, naming it, or there is none.
    """
    lines = text_files.decode_lines(sys.stdin.buffer, "standard input") if name == "-" else text_files.read_lines(name)
    if not lines:
        raise ValueError(f"{'standard input' if name == '-' else name} is empty: there is nothing to translate.")
    return lines


def write_lines(name, lines):
    """Write lines to standard output, or to a file whole or not at all."""
    text = "".join(f"{' '.join(line.splitlines())}\n" for line in lines)
    if name == "-":
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(text.encode("utf-8"))
            sys.stdout.buffer.flush()
        return
    temporary = pathlib.Path(f"{name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, name)


if __name__ == "__main__":
    flags.run(main, GROUPS)
