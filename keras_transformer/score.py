"""How likely a model finds given translations: `python -m keras_transformer.score --model=PATH
--source_file=a.en --reference_file=a.de`.

Writes for every pair of lines log P(Y | X) in nats, which the search of section 6.1 (Vaswani et al.
2017) maximizes, a tab, and how many tokens Y has, EOS included in both. To filter text, to rank
translations of other systems, to find what a model has not learned.
"""

from keras_transformer import flags

GROUPS = ("model_path", "batch_tokens", "files", "output")


def main(FLAGS):
    from keras_transformer.streams import require_writable, write_lines
    from keras_transformer.translator.translator import Translator
    from pipelines.corpora import line_files

    model = flags.required_model(FLAGS)
    require_writable(FLAGS.output)
    sources, targets = line_files.read_aligned(*flags.required_files(FLAGS))
    scores = Translator.load(model).score(sources, targets, batch_tokens=FLAGS.batch_tokens)
    write_lines(
        FLAGS.output, [f"{log_probability:.5f}\t{tokens}" for log_probability, tokens in scores]
    )


if __name__ == "__main__":
    flags.run(main, GROUPS)
