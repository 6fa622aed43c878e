"""Align the words of sentences and their translations: `python -m keras_transformer.align
--model=PATH --source_file=a.en --reference_file=a.de`.

For every pair it writes a line such as `0-0 2-1`, with one link for each target word: the position
of its source word, a dash, and its own position. Words are separated by spaces and counted from 0.
Links come from the decoder's attention to the source (Vaswani et al. 2017, section 3.2.3), averaged
over the heads of the last layer but one, or of the only layer. Garg et al. 2019, "Jointly Learning
to Align and Translate with Transformer Models", found that layer the best.
"""

from keras_transformer import flags
from keras_transformer.evaluation.options import Files
from keras_transformer.flags.of_commands import DecodeTokens, ModelToUse, Output

SECTIONS = (ModelToUse, DecodeTokens, Files, Output)


def main(FLAGS):
    from keras_transformer.inference.translator import Translator
    from keras_transformer.streams import write_lines
    from pipelines import line_files

    model = flags.required(FLAGS, "model")
    flags.require_output(FLAGS)
    files = (flags.required(FLAGS, name) for name in ("source_file", "reference_file"))
    sources, targets = line_files.read_aligned(*files)
    links = Translator.load(model).align(sources, targets, FLAGS.decode_tokens)
    write_lines(FLAGS.output, [" ".join(f"{i}-{j}" for i, j in line) for line in links])


if __name__ == "__main__":
    flags.run(main, SECTIONS)
