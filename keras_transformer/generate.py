"""Continue each line with a language model: `python -m keras_transformer.generate --model=runs/gpt
< prompts.txt`.

Texts are sampled, unless flags ask for a search as in section 6.1 of Vaswani et al. 2017.
"""

from keras_transformer import flags
from keras_transformer.flags.of_commands import SEARCHING, Lines, Output

SECTIONS = (*SEARCHING, Lines, Output)


def main(FLAGS):
    from keras_transformer import streams
    from keras_transformer.inference.generator import Generator

    model = flags.required(FLAGS, "model")
    if FLAGS.num_hypotheses > 1:
        raise ValueError(
            f"--num_hypotheses={FLAGS.num_hypotheses}: generate writes one text for a line. Leave "
            "it out, or call the signature nbest of an export."
        )
    flags.check_stream(FLAGS)
    flags.require_output(FLAGS)
    options = flags.decoding_options(FLAGS)
    if FLAGS["seed"].present:
        options["seed"] = FLAGS.seed
    generator = Generator.load(model, FLAGS.precision, **options)
    if FLAGS.stream:
        streams.answer_lines(lambda line: streams.as_lines(generator.generate([line])))
        return
    streams.write_lines(FLAGS.output, generator.generate(streams.read_lines(FLAGS.input)))


if __name__ == "__main__":
    flags.run(main, SECTIONS)
