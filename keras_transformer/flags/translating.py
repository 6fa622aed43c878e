"""Flags of the commands that translate, parse and score. The defaults are the paper's search
(Vaswani et al. 2017, section 6.1). A SavedModel has its own, and so has a run of a translator or
parser.
"""

import dataclasses

from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class SearchOptions(Options):
    """Search."""

    beam_size: int | None = option(
        None,
        "Number of hypotheses that beam search keeps; 1 is greedy search. Default: 4, or the "
        "value that a SavedModel was exported with, or a run of a translator or parser trained "
        "with. The command generate samples, unless this or another flag asks for a search.",
        at_least=1,
    )
    length_penalty: float | None = option(
        None,
        "Exponent alpha of the length penalty ((5 + length) / 6)^alpha; 0: no penalty. Default: "
        "0.6, or the value that a SavedModel was exported with, or a run of a translator or "
        "parser trained with.",
        at_least=0,
    )


@dataclasses.dataclass(frozen=True)
class DecodingFlags(Options):
    """Decoding."""

    coverage_penalty: float | None = option(
        None,
        "Weight beta of the penalty for source words that were not attended to (Wu et al. 2016, "
        "eq. 14); 0: no penalty. Default: 0, or the value that a SavedModel was exported with, "
        "or a run of a translator or parser trained with.",
        at_least=0,
    )
    num_hypotheses: int = option(
        1,
        "Number of translations of a line, best first. More than one: translate needs --json.",
        at_least=1,
    )
    max_length: str | None = option(
        None,
        'Limit of a translation in pieces, its end included: 80, "+50" more than the source, '
        '"1.5x" the source, or "2x+10". Default: +50, for a parser +300, or the value that a '
        "SavedModel was exported with, or a run of a translator or parser trained with.",
    )
    min_length: str | None = option(
        None,
        "Fewest pieces of a translation, its end included, written as --max_length. Default: 2, "
        "for a parser 1, or the value that a SavedModel was exported with, or a run of a "
        "translator or parser trained with.",
    )
    no_repeat_ngram_size: int | None = option(
        None,
        "Number n: no n pieces in a row may come twice in a translation; 0: all may repeat. "
        "Default: 0, or the value that a SavedModel was exported with, or a run of a translator "
        "or parser trained with.",
        at_least=0,
    )
    repetition_penalty: float | None = option(
        None,
        "Factor above 1 that makes pieces less likely once they have come before. Default: 1, "
        "or the value that a SavedModel was exported with, or a run of a translator or parser "
        "trained with.",
        at_least=1e-09,
    )
    constrained: bool | None = option(
        None,
        "Let a parser write only well-formed trees over the words of the sentence. Otherwise "
        "its output is repaired afterwards. Default: no, or the value that a SavedModel was "
        "exported with, or a run of a translator or parser trained with.",
    )
    samples: int = option(
        0,
        "Number of translations to draw instead of a search; the likeliest is given. 0: search. "
        "generate draws one if no flag asks for a search.",
        at_least=0,
    )
    temperature: float | None = option(
        None,
        "Temperature of samples; below 1, likely pieces are drawn more often. Default: 1.",
        at_least=1e-09,
    )
    top_k: int | None = option(
        None,
        "Number of likeliest pieces that samples are drawn from. Default: all pieces.",
        at_least=0,
    )
    top_p: float | None = option(
        None,
        "Samples are drawn from the likeliest pieces that hold this share of the probability. "
        "Default: 1, in generate 0.9.",
        at_least=1e-09,
        at_most=1,
    )


@dataclasses.dataclass(frozen=True)
class DecodeTokens(Options):
    """Batches of decoding."""

    decode_tokens: int | None = option(
        None, "Source tokens in a batch that is decoded, with padding. Default: 2,048.", at_least=1
    )


@dataclasses.dataclass(frozen=True)
class Precision(Options):
    """Precision."""

    precision: str = option(
        "float32",
        "Precision of the weights to translate with. bfloat16 takes half the bytes, and is "
        "faster if the processor multiplies it.",
        choices=("float32", "bfloat16"),
    )


@dataclasses.dataclass(frozen=True)
class ModelToUse(Options):
    """Model to use."""

    model: str | None = option(
        None,
        "Model to use: a SavedModel such as saved_models/<name>[/<version>], or (not for "
        "predict) a run's folder or a checkpoint in it. Several of these, joined by commas, are "
        "an ensemble; only translators and parsers can be.",
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class Lines(Options):
    """Lines."""

    input: str = option(
        "-",
        "File of lines to translate, parse, continue or classify, in UTF-8; -: standard input.",
        path=True,
    )
    stream: bool = option(False, "Answer each line of standard input as soon as it comes.")


@dataclasses.dataclass(frozen=True)
class TranslateOptions(Options):
    """Translation."""

    prefix_file: str | None = option(
        None,
        "File with a line for each line of the input: the words that its translation must begin "
        "with. An empty line allows any beginning.",
        path=True,
    )
    split_sentences: bool = option(
        False,
        "Translate each sentence of a line on its own, and join the translations to one line.",
    )


@dataclasses.dataclass(frozen=True)
class ParseOptions(Options):
    """Trees."""

    tree_format: str = option(
        "brackets",
        "What to write. brackets: one tree a line. drawn: trees drawn as text, for a terminal, "
        "which needs nltk. picture: the .svg or .png that --output names, which needs "
        "matplotlib.",
        choices=("brackets", "drawn", "picture"),
    )
    raw_text: bool = option(
        False,
        "Split each line into words as the Penn Treebank does; it needs nltk. Without it, words "
        "and punctuation must be separated by spaces.",
    )


@dataclasses.dataclass(frozen=True)
class PredictOptions(Options):
    """Prediction."""

    signature: str | None = option(
        None,
        "Signature of the SavedModel to call: one that takes a text or a picture file. Default: "
        "classify_png if there is one, else serving_default.",
    )


@dataclasses.dataclass(frozen=True)
class JsonOutput(Options):
    """JSON."""

    json: bool = option(
        False,
        "Write JSON. translate: an object for each line with all hypotheses, their scores, and "
        "log P of each piece. predict: an object for each line with all outputs. evaluate: one "
        "object with all figures.",
    )


@dataclasses.dataclass(frozen=True)
class Output(Options):
    """Output."""

    output: str = option(
        "-",
        "File to write: a line for each line of input, the flags that tune found, or the "
        "picture that visualize or parse draws (.png or .svg); -: standard output.",
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class Files(Options):
    """Files."""

    source_file: str | None = option(
        None, "File of source lines. It needs --reference_file.", path=True
    )
    reference_file: str | None = option(
        None,
        "File of the translations of --source_file, line by line. For a parser, a file of "
        "trees; for a language model, of texts.",
        path=True,
    )
