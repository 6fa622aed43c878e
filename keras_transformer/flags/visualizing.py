"""Flags of the command that draws pictures (Vaswani et al. 2017, figures 3 to 5)."""

import dataclasses

from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class ThemeOptions(Options):
    """Look."""

    theme: str = option("light", "Colours of the picture.", choices=("light", "dark"))


@dataclasses.dataclass(frozen=True)
class VisualizeOptions(Options):
    """Picture."""

    picture: str | None = option(
        None,
        "Picture to draw. attention: maps of all layers and heads. head: heads of one layer as "
        "lines between words. alignment: a matrix of words. heads: what each head does. "
        "positions: how the model knows positions. n_best: the hypotheses as a tree. "
        "learning_rate: the curves of --schedules. curves: loss and BLEU of several runs. "
        "lengths: sentence lengths of the run's corpus, and its buckets. patches: the patches "
        "that an image model attends to.",
        choices=(
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
        ),
    )
    line: str | None = option(None, "Sentence for attention, head, alignment and n_best.")
    png: str | None = option(
        None,
        "PNG or JPEG file for patches. Default: the first picture of the model's test split.",
        path=True,
    )
    translation: str | None = option(
        None,
        "Translation of --line whose attention is drawn. Default: the model's own, which is "
        "printed.",
    )
    stack: str | None = option(
        None,
        "Attention to draw: the encoder's or the decoder's self-attention, or cross, the "
        "decoder's attention to the source. Default: cross; of a model with one stack, its "
        "self-attention.",
        choices=("encoder", "decoder", "cross"),
    )
    pieces: bool = option(False, "Draw pieces instead of joining them to words.")
    layer: int | None = option(
        None,
        "Layer for head and alignment, from 1. Default: the last but one, or the only one.",
        at_least=1,
    )
    heads: tuple[str, ...] = option((), "Heads to draw, from 1, joined by commas. Default: all.")
    from_word: str | None = option(
        None, "For head: draw the lines of this word alone. Default: all."
    )
    schedules: tuple[str, ...] = option(
        ("base.flags",),
        "Learning rates to draw, joined by commas: each a flag file, flags such as "
        "--warmup_steps=8000, or a file followed by flags.",
    )
    steps: int | None = option(
        None, "Last step of the learning rates. Default: ten times the longest warm-up.", at_least=2
    )
    measured_sentences: int = option(
        100,
        "For heads: number of sentences to measure on, the first of the validation split or of "
        "--source_file.",
        at_least=1,
    )
    trees: str | None = option(
        None,
        "For heads: file of trees in brackets in the source language. Adds a measure of how "
        "well the encoder's heads agree with them.",
        path=True,
    )
    ablate: bool = option(
        False,
        "For heads: also measure the BLEU, or a parser's F1, that is lost without each head. "
        "All sentences are translated once per head, greedily unless --beam_size is given.",
    )
