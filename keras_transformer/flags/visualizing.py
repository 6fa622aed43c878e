"""Flags of the command that draws pictures (Vaswani et al. 2017, figures 3 to 5)."""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

THEME = flags.FlagValues()
flags.DEFINE_enum("theme", "light", ["light", "dark"], "Colours of the picture.", THEME)

VISUALIZE = flags.FlagValues()
flags.DEFINE_enum(
    "picture",
    None,
    [
        "attention",
        "head",
        "alignment",
        "heads",
        "positions",
        "n_best",
        "learning_rate",
        "curves",
        "lengths",
        "patches",
    ],
    "Picture to draw. attention: maps of all layers and heads. head: heads of one layer as lines "
    "between words. alignment: a matrix of words. heads: what each head does. positions: how the "
    "model knows positions. n_best: the hypotheses as a tree. learning_rate: the curves of "
    "--schedules. curves: loss and BLEU of several runs. lengths: sentence lengths of the run's "
    "corpus, and its buckets. patches: the patches that an image model attends to.",
    VISUALIZE,
)
flags.DEFINE_string("line", None, "Sentence for attention, head, alignment and n_best.", VISUALIZE)
DEFINE_path(
    "png",
    None,
    "PNG or JPEG file for patches. Default: the first picture of the model's test split.",
    VISUALIZE,
)
flags.DEFINE_string(
    "translation",
    None,
    "Translation of --line whose attention is drawn. Default: the model's own, which is printed.",
    VISUALIZE,
)
flags.DEFINE_enum(
    "stack",
    None,
    ["encoder", "decoder", "cross"],
    "Attention to draw: the encoder's or the decoder's self-attention, or cross, the decoder's "
    "attention to the source. Default: cross; of a model with one stack, its self-attention.",
    VISUALIZE,
)
flags.DEFINE_bool("pieces", False, "Draw pieces instead of joining them to words.", VISUALIZE)
flags.DEFINE_integer(
    "layer",
    None,
    "Layer for head and alignment, from 1. Default: the last but one, or the only one.",
    1,
    flag_values=VISUALIZE,
)
flags.DEFINE_list(
    "heads", [], "Heads to draw, from 1, joined by commas. Default: all.", flag_values=VISUALIZE
)
flags.DEFINE_string(
    "from_word", None, "For head: draw the lines of this word alone. Default: all.", VISUALIZE
)
flags.DEFINE_list(
    "schedules",
    ["base.flags"],
    "Learning rates to draw, joined by commas: each a flag file, flags such as "
    "--warmup_steps=8000, or a file followed by flags.",
    flag_values=VISUALIZE,
)
flags.DEFINE_integer(
    "steps",
    None,
    "Last step of the learning rates. Default: ten times the longest warm-up.",
    2,
    flag_values=VISUALIZE,
)
flags.DEFINE_integer(
    "measured_sentences",
    100,
    "For heads: number of sentences to measure on, the first of the validation split or of "
    "--source_file.",
    1,
    flag_values=VISUALIZE,
)
DEFINE_path(
    "trees",
    None,
    "For heads: file of trees in brackets in the source language. Adds a measure of how well the "
    "encoder's heads agree with them.",
    VISUALIZE,
)
flags.DEFINE_bool(
    "ablate",
    False,
    "For heads: also measure the BLEU, or a parser's F1, that is lost without each head. All "
    "sentences are translated once per head, greedily unless --beam_size is given.",
    VISUALIZE,
)
