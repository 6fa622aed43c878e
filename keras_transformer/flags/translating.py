"""Flags of the commands that translate, parse and score. The defaults are the paper's search
(Vaswani et al. 2017, section 6.1). A SavedModel has its own, and so has a run of a translator or
parser.
"""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

# The end of a default that a run remembers and a SavedModel has in it.
OR_ITS_OWN = (
    "or the value that a SavedModel was exported with, or a run of a translator or parser trained "
    "with."
)

SEARCH = flags.FlagValues()
flags.DEFINE_integer(
    "beam_size",
    None,
    f"Number of hypotheses that beam search keeps; 1 is greedy search. Default: 4, {OR_ITS_OWN} "
    "The command generate samples, unless this or another flag asks for a search.",
    1,
    flag_values=SEARCH,
)
flags.DEFINE_float(
    "length_penalty",
    None,
    "Exponent alpha of the length penalty ((5 + length) / 6)^alpha; 0: no penalty. Default: 0.6, "
    f"{OR_ITS_OWN}",
    0,
    flag_values=SEARCH,
)

DECODING = flags.FlagValues()
flags.DEFINE_float(
    "coverage_penalty",
    None,
    "Weight beta of the penalty for source words that were not attended to (Wu et al. 2016, eq. "
    f"14); 0: no penalty. Default: 0, {OR_ITS_OWN}",
    0,
    flag_values=DECODING,
)
flags.DEFINE_integer(
    "num_hypotheses",
    1,
    "Number of translations of a line, best first. More than one: translate needs --json.",
    1,
    flag_values=DECODING,
)
flags.DEFINE_string(
    "max_length",
    None,
    'Limit of a translation in pieces, its end included: 80, "+50" more than the source, "1.5x" '
    f'the source, or "2x+10". Default: +50, for a parser +300, {OR_ITS_OWN}',
    DECODING,
)
flags.DEFINE_string(
    "min_length",
    None,
    "Fewest pieces of a translation, its end included, written as --max_length. Default: 2, for a "
    f"parser 1, {OR_ITS_OWN}",
    DECODING,
)
flags.DEFINE_integer(
    "no_repeat_ngram_size",
    None,
    "Number n: no n pieces in a row may come twice in a translation; 0: all may repeat. Default: "
    f"0, {OR_ITS_OWN}",
    0,
    flag_values=DECODING,
)
flags.DEFINE_float(
    "repetition_penalty",
    None,
    "Factor above 1 that makes pieces less likely once they have come before. Default: 1, "
    f"{OR_ITS_OWN}",
    1e-9,
    flag_values=DECODING,
)
flags.DEFINE_bool(
    "constrained",
    None,
    "Let a parser write only well-formed trees over the words of the sentence. Otherwise its "
    f"output is repaired afterwards. Default: no, {OR_ITS_OWN}",
    DECODING,
)
flags.DEFINE_integer(
    "samples",
    0,
    "Number of translations to draw instead of a search; the likeliest is given. 0: search. "
    "generate draws one if no flag asks for a search.",
    0,
    flag_values=DECODING,
)
flags.DEFINE_float(
    "temperature",
    None,
    "Temperature of samples; below 1, likely pieces are drawn more often. Default: 1.",
    1e-9,
    flag_values=DECODING,
)
flags.DEFINE_integer(
    "top_k",
    None,
    "Number of likeliest pieces that samples are drawn from. Default: all pieces.",
    0,
    flag_values=DECODING,
)
flags.DEFINE_float(
    "top_p",
    None,
    "Samples are drawn from the likeliest pieces that hold this share of the probability. Default: "
    "1, in generate 0.9.",
    1e-9,
    1,
    flag_values=DECODING,
)

DECODE_TOKENS = flags.FlagValues()
flags.DEFINE_integer(
    "decode_tokens",
    None,
    "Source tokens in a batch that is decoded, with padding. Default: 2,048.",
    1,
    flag_values=DECODE_TOKENS,
)

PRECISION = flags.FlagValues()
flags.DEFINE_enum(
    "precision",
    "float32",
    ["float32", "bfloat16"],
    "Precision of the weights to translate with. bfloat16 takes half the bytes, and is faster if "
    "the processor multiplies it.",
    PRECISION,
)

MODEL_PATH = flags.FlagValues()
DEFINE_path(
    "model",
    None,
    "Model to use: a SavedModel such as saved_models/<name>[/<version>], or (not for predict) a "
    "run's folder or a checkpoint in it. Several of these, joined by commas, are an ensemble; only "
    "translators and parsers can be.",
    MODEL_PATH,
)

INPUT = flags.FlagValues()
DEFINE_path(
    "input",
    "-",
    "File of lines to translate, parse, continue or classify, in UTF-8; -: standard input.",
    INPUT,
)
flags.DEFINE_bool("stream", False, "Answer each line of standard input as soon as it comes.", INPUT)

TRANSLATE = flags.FlagValues()
DEFINE_path(
    "prefix_file",
    None,
    "File with a line for each line of the input: the words that its translation must begin with. "
    "An empty line allows any beginning.",
    TRANSLATE,
)
flags.DEFINE_bool(
    "split_sentences",
    False,
    "Translate each sentence of a line on its own, and join the translations to one line.",
    TRANSLATE,
)

PARSE = flags.FlagValues()
flags.DEFINE_enum(
    "tree_format",
    "brackets",
    ["brackets", "drawn", "picture"],
    "What to write. brackets: one tree a line. drawn: trees drawn as text, for a terminal, which "
    "needs nltk. picture: the .svg or .png that --output names, which needs matplotlib.",
    PARSE,
)
flags.DEFINE_bool(
    "raw_text",
    False,
    "Split each line into words as the Penn Treebank does; it needs nltk. Without it, words and "
    "punctuation must be separated by spaces.",
    PARSE,
)

PREDICT = flags.FlagValues()
flags.DEFINE_string(
    "signature",
    None,
    "Signature of the SavedModel to call: one that takes a text or a picture file. Default: "
    "classify_png if there is one, else serving_default.",
    PREDICT,
)

JSON = flags.FlagValues()
flags.DEFINE_bool(
    "json",
    False,
    "Write JSON. translate: an object for each line with all hypotheses, their scores, and log P "
    "of each piece. predict: an object for each line with all outputs. evaluate: one object with "
    "all figures.",
    JSON,
)

OUTPUT = flags.FlagValues()
DEFINE_path(
    "output",
    "-",
    "File to write: a line for each line of input, the flags that tune found, or the picture "
    "that visualize or parse draws (.png or .svg); -: standard output.",
    OUTPUT,
)

FILES = flags.FlagValues()
DEFINE_path("source_file", None, "File of source lines. It needs --reference_file.", FILES)
DEFINE_path(
    "reference_file",
    None,
    "File of the translations of --source_file, line by line. For a parser, a file of trees; for a "
    "language model, of texts.",
    FILES,
)
