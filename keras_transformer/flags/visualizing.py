"""Flags of the command that draws pictures (Vaswani et al. 2017, figures 3 to 5)."""

from absl import flags

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
    "between words. alignment: a matrix of words. heads: what each head does. positions: what the "
    "model knows positions by. n_best: the hypotheses as a tree. learning_rate: those of "
    "--schedules. curves: loss and BLEU of several runs. lengths: of the run's corpus, and its "
    "buckets. patches: what a model of pictures looks at.",
    VISUALIZE,
)
flags.DEFINE_string(
    "line", None, "Sentence to look at: attention, head, alignment, n_best.", VISUALIZE
)
flags.DEFINE_string(
    "png",
    None,
    "PNG file to look at: patches. Default: the first picture of the model's test split.",
    VISUALIZE,
)
flags.DEFINE_string(
    "translation",
    None,
    "Translation of --line to look at. Default: the model's own, which is printed.",
    VISUALIZE,
)
flags.DEFINE_enum(
    "stack",
    None,
    ["encoder", "decoder", "cross"],
    "Attention to draw: the self-attention of the encoder or of the decoder, or the decoder's to "
    "the source, which is the default of a translator. Models of one stack have that.",
    VISUALIZE,
)
flags.DEFINE_bool("pieces", False, "Draw pieces instead of joining them to words.", VISUALIZE)
flags.DEFINE_integer(
    "layer",
    None,
    "Layer to draw, from 1: head, alignment. Default: the last but one, or the only one.",
    1,
    flag_values=VISUALIZE,
)
flags.DEFINE_list(
    "heads", [], "Heads to draw, from 1, joined by commas. Default: all.", flag_values=VISUALIZE
)
flags.DEFINE_string(
    "from_word", None, "Draw the lines of this word alone: head. Default: all.", VISUALIZE
)
flags.DEFINE_list(
    "schedules",
    ["base.flags"],
    "Learning rates to draw, joined by commas: each a flag file, flags such as "
    "--warmup_steps=8000, or a file and flags behind it.",
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
    "Number of sentences, the first of the validation split or of --source_file, that heads are "
    "measured on.",
    1,
    flag_values=VISUALIZE,
)
flags.DEFINE_string(
    "trees",
    None,
    "File of trees in brackets in the source language: heads also tells how well the encoder's "
    "heads agree with them.",
    VISUALIZE,
)
flags.DEFINE_bool(
    "ablate",
    False,
    "Let heads also tell what BLEU, or a parser's F1, loses without each head: an answer to all "
    "sentences for each, by greedy search unless --beam_size is given.",
    VISUALIZE,
)
