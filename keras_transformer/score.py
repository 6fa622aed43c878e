"""Score given translations by their probability: `python -m keras_transformer.score --model=PATH
--source_file=a.en --reference_file=a.de`.

For every pair of lines it writes log P(Y | X) in nats, a tab, and the number of tokens of Y. Both
include EOS. The search of section 6.1 (Vaswani et al. 2017) maximizes this log P. Use it to
filter text, to rank translations of other systems, or to find what a model has not learned.
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
    scores = Translator.load(model).score(sources, targets, batch_tokens=FLAGS.decode_tokens)
    write_lines(FLAGS.output, [f"{score:.5f}\t{tokens}" for score, tokens in scores])


if __name__ == "__main__":
    flags.run(main, SECTIONS)
