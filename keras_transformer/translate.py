"""Translate each line: `python -m keras_transformer.translate --model=runs/home_assistant_en_de
< lines.en > lines.de`.

The beam search is that of section 6.1 of Vaswani et al. 2017, with the options that the model was
trained or exported with, unless flags change them.
"""

import functools
import json

from keras_transformer import flags
from keras_transformer.flags.of_commands import (
    SEARCHING,
    TRANSLATING,
    DecodeTokens,
    Documents,
    JsonOutput,
    Lines,
    Output,
    file_format_of,
)
from pipelines.documents import BILINGUAL

SECTIONS = (*SEARCHING, DecodeTokens, Lines, *TRANSLATING, Documents, JsonOutput, Output)


def main(FLAGS):
    from keras_transformer import streams
    from keras_transformer.inference.line_batches import speed_bar
    from keras_transformer.inference.translator import Translator
    from keras_transformer.runs.model_path import description_of
    from keras_transformer.startup import spread_over_cores
    from pipelines.glossary import marking
    from pipelines.vocabularies.protected_spans import ProtectedSpans

    model = flags.required(FLAGS, "model")
    _refuse(FLAGS)
    file_format = file_format_of(FLAGS)
    # A bilingual file may be its own output, for the source texts stay in it.
    flags.require_output(FLAGS, but="input" if file_format in BILINGUAL else None)
    document = streams.read_document(FLAGS.input, file_format, FLAGS.all)

    def read():
        lines = streams.read_lines(FLAGS.input)
        return lines, streams.read_prefixes(FLAGS.prefix_file, lines)

    # Standard input is read after the model is loaded, so that a wrong model is reported at once.
    text = None if document or FLAGS.input == "-" else read()
    marked = marking(FLAGS.glossary, description_of(model) if FLAGS.glossary else {})
    at_once = spread_over_cores()
    translator = Translator.load(model, FLAGS.precision, **flags.translation_options(FLAGS))
    answers = functools.partial(_answers, FLAGS, translator, marked)
    if document:
        translated = document.translated(
            lambda texts, numbers: answers(texts, None, at_once, None, numbers),
            ProtectedSpans.in_description(translator.description) is not None,
        )
        streams.write_text(FLAGS.output, translated)
    elif FLAGS.stream:
        streams.answer_lines(lambda line: streams.as_lines(answers([line])))
    else:
        lines, prefixes = text or read()
        with speed_bar(len(lines)) as report:
            rows = answers(lines, prefixes, at_once, report)
        streams.write_lines(FLAGS.output, rows)


def _refuse(FLAGS):
    """Refuse flags that exclude each other."""
    if FLAGS.num_hypotheses > 1 and not FLAGS.json:
        raise ValueError(
            f"--num_hypotheses={FLAGS.num_hypotheses} without --json: an output line has room for "
            "one translation. Add --json."
        )
    of_a_sentence = {"json": "hypotheses and scores belong", "prefix_file": "a prefix belongs"}
    for name, which in of_a_sentence.items():
        if FLAGS[name].value and FLAGS.split_sentences:
            raise ValueError(
                f"--{name} and --split_sentences exclude each other: {which} to one sentence."
            )
    flags.check_stream(FLAGS, prefix_file=bool(FLAGS.prefix_file))


def _answers(FLAGS, translator, marked, lines, prefixes=None, at_once=1, report=None, numbers=None):
    """Return what is written for each line: its translation, or with --json an object."""
    texts = [*map(marked, lines)]
    if not FLAGS.json:
        return translator.translate(
            texts, prefixes, FLAGS.split_sentences, FLAGS.decode_tokens, at_once, report, numbers
        )
    details = translator.translate_in_detail(texts, prefixes, FLAGS.decode_tokens, at_once, report)
    n_best = ([hypothesis.as_dict() for hypothesis in hypotheses] for hypotheses in details)
    rows = ({"source": line, "hypotheses": best} for line, best in zip(lines, n_best, strict=True))
    return [json.dumps(row, ensure_ascii=False) for row in rows]


if __name__ == "__main__":
    flags.run(main, SECTIONS)
