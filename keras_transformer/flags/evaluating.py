"""Flags of the commands that measure translations and choose a search by them (Vaswani et al. 2017,
section 6.1).
"""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

EVALUATE = flags.FlagValues()
flags.DEFINE_enum(
    "split",
    "test",
    ["train", "valid", "test"],
    "Split to evaluate of the corpus that the model was trained on.",
    EVALUATE,
)
flags.DEFINE_list(
    "metrics",
    None,
    "Metrics to print, joined by commas: bleu, bleu_intl, bleu_lc (lower-cased), bleu_language "
    "(the tokenizer of the target language), bleu_compounds (the paper's), chrf, chrf++, ter. "
    "Default: all, of languages without spaces between words only those that need none.",
    flag_values=EVALUATE,
)
flags.DEFINE_bool(
    "confidence",
    False,
    "Print 95 % intervals, by 1,000 bootstrap resamples of the sentences.",
    EVALUATE,
)
DEFINE_path(
    "baseline_file",
    None,
    "File of another system's translations, line by line, to test the difference for significance.",
    EVALUATE,
)
flags.DEFINE_enum(
    "significance",
    "bootstrap",
    ["bootstrap", "approximate_randomization"],
    "Paired test of the difference from --baseline_file.",
    EVALUATE,
)
DEFINE_path(
    "evalb_parameters",
    None,
    "EVALB's parameter file that trees are scored by. Default: what COLLINS.prm says.",
    EVALUATE,
)

TOKENIZE = flags.FlagValues()
flags.DEFINE_enum(
    "tokenize",
    None,
    ["13a", "intl", "none", "char", "zh", "ja-mecab", "ko-mecab"],
    "Tokenizer of sacrebleu that BLEU is counted with. none: for text that is tokenized already. "
    "Default: by the target language: zh for Chinese; char for Japanese, Korean, Thai, Lao, Khmer, "
    "Burmese and other languages without spaces between words; 13a for the rest. A run that is "
    "resumed keeps its own.",
    TOKENIZE,
)

TUNE = flags.FlagValues()
flags.DEFINE_list(
    "beam_sizes", ["1", "2", "4", "8"], "Beam sizes to try, joined by commas.", flag_values=TUNE
)
flags.DEFINE_list(
    "length_penalties",
    ["0", "0.2", "0.4", "0.6", "0.8", "1.0"],
    "Exponents of the length penalty to try, joined by commas.",
    flag_values=TUNE,
)
flags.DEFINE_integer(
    "sentences",
    500,
    "Number of validation sentences to translate, the first ones; 0: all.",
    0,
    flag_values=TUNE,
)
