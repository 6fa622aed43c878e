"""Write the constituency tree of each line: `python -m keras_transformer.parse
--model=runs/parsing_en < sentences.txt > trees.txt`.

The beam search is that of section 6.3 of Vaswani et al. 2017, with the options that the parser was
trained or exported with, unless flags change them.
"""

from keras_transformer import flags
from keras_transformer.flags.of_commands import SEARCHING, DecodeTokens, Lines, Output, ParseOptions
from keras_transformer.visualization.theme import ThemeOptions

SECTIONS = (*SEARCHING, DecodeTokens, Lines, ParseOptions, ThemeOptions, Output)


def main(FLAGS):
    from keras_transformer import streams
    from keras_transformer.inference.line_batches import speed_bar
    from keras_transformer.inference.loading import refuse_other_task
    from keras_transformer.inference.translator import Translator
    from keras_transformer.startup import spread_over_cores
    from keras_transformer.visualization import tree_drawings
    from pipelines.trees import split_words

    model = flags.required(FLAGS, "model")
    _refuse(FLAGS)
    flags.require_output(FLAGS)
    at_once = spread_over_cores()
    parser = Translator.load(model, FLAGS.precision, **flags.decoding_options(FLAGS))
    refuse_other_task(parser.description, model, "parsing")
    words_of = split_words if FLAGS.raw_text else list
    as_texts = {"brackets": streams.as_lines, "drawn": tree_drawings.all_as_text}
    as_text = as_texts.get(FLAGS.tree_format)
    if FLAGS.stream:
        streams.answer_lines(lambda line: as_text(parser.translate(words_of([line]))))
        return
    sentences = words_of(streams.read_lines(FLAGS.input))
    if not as_text:
        tree_drawings.refuse_number(sum(1 for sentence in sentences if sentence.strip()))
    with speed_bar(len(sentences)) as report:
        trees = parser.translate(
            sentences, batch_tokens=FLAGS.decode_tokens, batches_at_once=at_once, report=report
        )
    if as_text:
        streams.write_text(FLAGS.output, as_text(trees))
    else:
        tree_drawings.write(FLAGS.output, trees, FLAGS.theme)


def _refuse(FLAGS):
    """Refuse flags that exclude each other, and a drawing without nltk."""
    from keras_transformer.visualization import picture_file, tree_drawings

    if FLAGS.num_hypotheses > 1:
        raise ValueError(
            f"--num_hypotheses={FLAGS.num_hypotheses}: parse writes one tree for a sentence. Leave "
            "it out, or take python -m keras_transformer.translate --json, which writes several."
        )
    draws = FLAGS.tree_format == "picture"
    flags.check_stream(FLAGS, **{"tree_format=picture": draws})
    if draws:
        picture_file.form_of(FLAGS.output)
    if FLAGS.tree_format == "drawn":
        tree_drawings.require_nltk()


if __name__ == "__main__":
    flags.run(main, SECTIONS)
