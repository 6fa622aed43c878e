"""Options of the commands that use a model, and of all commands."""

from absl import flags as absl_flags

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.saved_models.options import Precision
from keras_transformer.training.options import Seed
from pipelines.documents import BILINGUAL, ENDINGS, UNREAD, format_of
from pipelines.options import FREE, Options, option


class DecodeTokens(Options):
    """Batches of decoding."""

    decode_tokens: int | None = option(
        None, "Maximum source tokens in a decoding batch, with padding. Default: 2,048.", at_least=1
    )


class ModelToUse(Options):
    """Model to use."""

    model: str | None = option(
        None,
        "Model to use: a SavedModel such as saved_models/<name>[/<version>], or (not for "
        "predict) a run's folder or a checkpoint in it. Several translators or parsers, joined by "
        "commas, form an ensemble.",
        path=True,
    )


class Lines(Options):
    """Lines."""

    input: str = option(
        "-",
        "File of lines to translate, parse, continue or classify, in UTF-8; -: standard input. "
        "translate_corpus: several, such as 'text/*.gz'.",
        path=True,
    )
    stream: bool = option(False, "Answer each line of standard input as soon as it arrives.")


class TranslateOptions(Options):
    """Translation."""

    needs = (("task", ("translation", "parsing")),)

    prefix_file: str | None = option(
        None,
        "File with a line for each line of input: the words that its translation must begin "
        "with. An empty line allows any beginning.",
        path=True,
    )
    split_sentences: bool = option(
        False,
        "Translate each sentence of a line on its own, and join the translations into one line.",
    )
    glossary: str | None = option(
        None,
        "File with a term, a tab and its translation in each line, for a model that was trained "
        "with --protect or --glossary_rate. A term in a source gets this translation.",
        path=True,
    )


class Documents(Options):
    """Document formats."""

    needs = (("task", ("translation",)),)

    file_format: str | None = option(
        None,
        "Format of --input and --output: lines; a gettext catalogue (po); XLIFF 1.2 or 2; strings "
        "in JSON; subtitles (srt); a web page (html). Only the texts in it change. Default: that "
        "of the ending of --input, such as .po, else lines.",
        choices=("lines", "po", "xliff", "json", "srt", "html"),
    )
    all_: bool = option(False, "In po and xliff, also translate entries that have a translation.")


def file_format_of(FLAGS: absl_flags.FlagValues) -> str:
    """Return --file_format, by default that of --input's ending; refuse flags unfit for it."""
    kind = FLAGS.file_format or format_of(FLAGS.input)
    if kind in UNREAD:
        raise ValueError(
            f"files of {kind} are not read. Received: {FLAGS.input}. Convert it to one of "
            f"{', '.join(ENDINGS)}, or add --file_format=lines to translate each line as it stands."
        )
    if FLAGS.all and kind not in BILINGUAL:
        raise ValueError(
            f"--all is for --file_format={' or '.join(BILINGUAL)}. Received: "
            f"--file_format={kind}. Leave it out."
        )
    if kind != "lines" and (FLAGS.json or FLAGS.prefix_file or FLAGS.stream):
        raise ValueError(
            f"--file_format={kind} is written as it was read: leave out --json, --prefix_file and "
            "--stream."
        )
    return kind


class Languages(Options):
    """Languages."""

    needs = (("task", ("translation",)),)

    from_language: str | None = option(
        None,
        "Language to translate from, in the code of a model of many languages: eng_Latn, en. "
        "Default: as imported.",
    )
    to_language: str | None = option(
        None, "Language to translate into, such as deu_Latn or de. Default: as imported."
    )


class ParseOptions(Options):
    """Trees."""

    needs = (("task", ("parsing",)),)

    tree_format: str = option(
        "brackets",
        "How to write trees. brackets: one tree a line. drawn: as text pictures for a terminal "
        "(needs nltk). picture: as the .svg or .png that --output names (needs matplotlib).",
        choices=("brackets", "drawn", "picture"),
    )
    raw_text: bool = option(
        False,
        "Split each line into words as the Penn Treebank does (needs nltk). Otherwise words and "
        "punctuation must be separated by spaces.",
    )


class PredictOptions(Options):
    """Prediction."""

    signature: str | None = option(
        None,
        "Signature of the SavedModel to call, which must take a text or an image file. Default: "
        "classify_png if there is one, else serving_default.",
    )


class JsonOutput(Options):
    """JSON."""

    json: bool = option(
        False,
        "Write JSON. translate: an object for each line with all hypotheses, their scores, and "
        "log P of each piece. predict: an object for each line with all outputs. evaluate: one "
        "object with all scores.",
    )


class Output(Options):
    """Output."""

    output: str = option(
        "-",
        "File to write: a line for each line of input, the flags that tune found, or the picture "
        "of visualize or parse (.png or .svg); -: standard output. translate_corpus: a prefix.",
        path=True,
    )


class ImportOptions(Options):
    """Import."""

    from_: str | None = option(
        None,
        "Folder of the model to import: of Marian (decoder.yml, *.npz, vocabulary, *.spm), of "
        "OpenNMT-tf (a model_dir), or in Hugging Face's layout (config.json, *.safetensors).",
        path=True,
    )


class Errors(Options):
    """Errors."""

    traceback: bool = option(False, "Show the traceback of an error.")


class Dump(Options):
    """Dump."""

    dump_flags: bool = option(
        False, "Print all options that would apply, as a flag file, and exit.", resumed=FREE
    )


# Of commands that search with a model.
SEARCHING = (ModelToUse, DecodingOptions, Seed, Precision)
TRANSLATING = (TranslateOptions, Languages)
