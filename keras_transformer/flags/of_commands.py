"""Options of commands that use a model, and of all."""

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.saved_models.options import Precision
from keras_transformer.training.options import Seed
from pipelines.options import FREE, Options, option


class DecodeTokens(Options):
    """Batches of decoding."""

    decode_tokens: int | None = option(
        None, "Source tokens in a batch of decoding, with padding. Default: 2,048.", at_least=1
    )


class ModelToUse(Options):
    """Model to use."""

    model: str | None = option(
        None,
        "Model to use: a SavedModel such as saved_models/<name>[/<version>], or (not for "
        "predict) a run's folder or a checkpoint in it. Several of these, joined by commas, are "
        "an ensemble; only translators and parsers can be.",
        path=True,
    )


class Lines(Options):
    """Lines."""

    input: str = option(
        "-",
        "File of lines to translate, parse, continue or classify, in UTF-8; -: standard input.",
        path=True,
    )
    stream: bool = option(False, "Answer each line of standard input as soon as it comes.")


class TranslateOptions(Options):
    """Translation."""

    needs = (("task", ("translation", "parsing")),)

    prefix_file: str | None = option(
        None,
        "File with one line per line of the input: the words that its translation must begin "
        "with. An empty line allows any beginning.",
        path=True,
    )
    split_sentences: bool = option(
        False,
        "Translate each sentence of a line on its own, and join the translations to one line.",
    )
    glossary: str | None = option(
        None,
        "File with a term, a tab and its translation in each line, for a model that was trained "
        "with --protect or --glossary_rate. A term in a source gets this translation.",
        path=True,
    )


class Documents(Options):
    """Files that people translate."""

    needs = (("task", ("translation",)),)

    file_format: str | None = option(
        None,
        "Format of --input, and of the output, which has the translations in their places: lines; "
        "a catalogue of gettext (po); XLIFF 1.2 or 2; strings in JSON; subtitles (srt); a page. "
        "Default: as the name of --input ends, such as .po, or lines.",
        choices=("lines", "po", "xliff", "json", "srt", "html"),
    )
    all_: bool = option(False, "In po and xliff, translate also entries that have a translation.")


class Languages(Options):
    """Languages."""

    needs = (("task", ("translation",)),)

    from_language: str | None = option(
        None,
        "Language to translate from, as a model of many languages names it: eng_Latn, en. "
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
        "What to write. brackets: one tree a line. drawn: trees drawn as text, for a terminal, "
        "which needs nltk. picture: the .svg or .png that --output names, which needs matplotlib.",
        choices=("brackets", "drawn", "picture"),
    )
    raw_text: bool = option(
        False,
        "Split each line into words as the Penn Treebank does; it needs nltk. Without it, words "
        "and punctuation must be separated by spaces.",
    )


class PredictOptions(Options):
    """Prediction."""

    signature: str | None = option(
        None,
        "Signature of the SavedModel to call: one that takes a text or a picture file. Default: "
        "classify_png if there is one, else serving_default.",
    )


class JsonOutput(Options):
    """JSON."""

    json: bool = option(
        False,
        "Write JSON. translate: an object for each line with all hypotheses, their scores, and "
        "log P of each piece. predict: an object for each line with all outputs. evaluate: one "
        "object with all figures.",
    )


class Output(Options):
    """Output."""

    output: str = option(
        "-",
        "File to write: a line for each line of input, the flags that tune found, or the "
        "picture that visualize or parse draws (.png or .svg); -: standard output.",
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

    traceback: bool = option(False, "Show where in the program an error came from.")


class Dump(Options):
    """Dump."""

    dump_flags: bool = option(
        False, "Print the recipe that would run, as a flag file, and end.", resumed=FREE
    )


# A model that searches.
SEARCHING = (ModelToUse, DecodingOptions, Seed, Precision)
TRANSLATING = (TranslateOptions, Languages)
