"""Measures of what a run's heads do on held-out text, as a table and as a map for each measure and
stack (Vaswani et al. 2017, appendix).
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_transformer.evaluation.options import Files
from keras_transformer.visualization.attended import STACKS, between_words, require_shares, words_of
from keras_transformer.visualization.head_measures import (
    Phrases,
    Survey,
    agreement,
    by_chance,
    losses,
    read_phrases,
    survey,
    together,
)
from keras_transformer.visualization.theme import SMALL, Theme, ink_on, new_figure, shades
from pipelines.options import Options, again, option

OF_HEADS = {"picture": ("heads",)}
IN_PHRASE = "in its phrase"
CELL = (0.42, 0.3)


class Heads(Options):
    """What each head does."""

    measured_sentences: int = option(
        100,
        "For heads: number of sentences to measure on, the first of the validation split or of "
        "--source_file.",
        at_least=1,
        only=OF_HEADS,
    )
    trees: str | None = option(
        None,
        "For heads: file of bracketed trees in the source language, to measure also how well the "
        "encoder's heads agree with them.",
        path=True,
        only=OF_HEADS,
    )
    ablate: bool = option(
        False,
        "For heads: also measure how much BLEU, or a parser's F1, is lost without each head. This "
        "translates all sentences once per head, greedily unless --beam_size is given.",
        only=OF_HEADS,
    )
    source_file: str | None = again(Files, "source_file", only=OF_HEADS)
    reference_file: str | None = again(Files, "reference_file", only=OF_HEADS)

    def measure(self, model: str, search: Mapping):
        """Measure and print the table. Errors are reported before anything is measured."""
        from keras_transformer.evaluation.table import aligned
        from keras_transformer.inference.translator import Translator
        from keras_transformer.tasks.score import validation_of
        from keras_transformer.visualization.model_reading import trained_model

        phrases = read_phrases(self.trees, self.measured_sentences) if self.trees else []
        files = {"source_file": self.source_file, "reference_file": self.reference_file}
        if self.ablate:
            trained = trained_model(model, "heads --ablate")
        translator = Translator.load(model)
        scorer = validation_of(model, files, "--picture=heads")
        scorer.keep_first(self.measured_sentences)
        # A parser's references are trees.
        references = map(str, scorer.references)
        measures = survey(map(translator.attention, scorer.sources, references))
        if phrases:
            shares, chance = agreement_with(translator, phrases)
            measures[IN_PHRASE] = {"encoder": shares}
            print(f"{IN_PHRASE}, by chance: {chance:.2f}")
        if self.ablate:
            points = points_lost(trained, scorer.sources, scorer.quality, search)
            measures[f"{scorer.unit} lost"] = points
        print(aligned(table(measures)))
        return functools.partial(draw, measures)


def agreement_with(translator, phrases: Sequence[Phrases]) -> tuple[np.ndarray, float]:
    """Measure how often the word that a word attends to most, itself excluded, is in the smallest
    constituent around it. Return this share of the words of all trees (N, h), and that by chance.
    """
    agreements = []
    chances = []
    # Pieces before every text: a language label, or none.
    first = len(translator.attention("", "")["source_pieces"]) - 1
    for words, spans in phrases:
        attention = translator.attention(" ".join(words), "")
        if "encoder" not in attention:
            raise ValueError(
                "--trees needs an encoder with self-attention; this model has none. Leave it out."
            )
        labels, numbers = words_of(attention["source_pieces"])
        # A vocabulary that normalizes text may join words or drop one.
        if len(labels) != first + len(words) + 1 or len(words) < 2:
            continue
        require_shares(attention["encoder"], "encoder", "Leave --trees out.")
        weights = between_words(attention["encoder"], numbers, numbers)[..., first:-1, first:-1]
        belongs = together(len(words), spans)
        agreements.append(agreement(weights, belongs))
        chances.append(by_chance(belongs))
    if not agreements:
        raise ValueError(
            "--trees must hold trees of at least two words, which the model's vocabulary keeps "
            f"apart. Received: {len(phrases):,} trees, none of these."
        )
    return np.concatenate(agreements, axis=-1).mean(axis=-1), float(np.concatenate(chances).mean())


def points_lost(
    trained: tuple,
    sources: Sequence[str],
    quality: Callable[[Sequence[str]], float],
    search: Mapping,
) -> dict[str, np.ndarray]:
    """Measure how much the quality falls without each head: {stack: points (N, h)}."""
    from keras_transformer.decoding.remembered_options import options_of_run
    from keras_transformer.inference.loading import module_class
    from keras_transformer.inference.translator import Translator

    model, vocabulary, description = trained
    kind = module_class(description)
    options = options_of_run({"beam_size": 1, **search}, kind.defaults(description))
    translator = Translator(kind(model, vocabulary, options))
    return losses(model, lambda: quality(translator.translate(sources)))


def table(measures: Survey) -> list[list[str]]:
    """Return rows of text: a header, then one for each head. "-" is a measure its stack lacks."""
    lines = [["head", *measures]]
    maps = [pair for of_stacks in measures.values() for pair in of_stacks.items()]
    shapes = {stack: values.shape for stack, values in maps}
    for stack in (stack for stack in STACKS if stack in shapes):
        for layer, head in np.ndindex(shapes[stack]):
            cells = [
                f"{of_stacks[stack][layer, head]:.2f}" if stack in of_stacks else "-"
                for of_stacks in measures.values()
            ]
            lines.append([f"{stack} {layer + 1}.{head + 1}", *cells])
    return lines


def draw(measures: Survey, theme: Theme):
    """Draw a column of maps for each measure, a row for each stack. A map has layers from top to
    bottom and heads side by side; each measure's scale spans its least to its greatest value.
    """
    by_column = list(measures.values())
    stacks = [stack for stack in STACKS if any(stack in of_stacks for of_stacks in by_column)]
    # Not every measure has every stack. A stack's name is beside the first map of its row.
    first = {stack: [stack in of_stacks for of_stacks in by_column].index(True) for stack in stacks}
    layers, heads = by_column[first[stacks[0]]][stacks[0]].shape
    width = len(measures) * max(heads * CELL[0] + 0.35, 1.45) + 1.0
    figure = new_figure(width, len(stacks) * (layers * CELL[1] + 0.75) + 0.3)
    grid = figure.subplots(len(stacks), len(measures), squeeze=False)
    for column, (name, of_stacks) in enumerate(measures.items()):
        numbers = np.concatenate([values.ravel() for values in of_stacks.values()])
        for row, stack in enumerate(stacks):
            axes = grid[row, column]
            if stack not in of_stacks:
                axes.set_axis_off()
                continue
            _draw_map(axes, of_stacks[stack], (numbers.min(), numbers.max()), theme)
            axes.set_title(name, fontsize=SMALL + 1)
            axes.set_xlabel("head", fontsize=SMALL)
            if column == first[stack]:
                axes.set_ylabel(f"{stack}\nlayer")
    return figure


def _draw_map(axes, values, limits, theme):
    least, most = limits
    axes.imshow(values, cmap=shades(theme), vmin=least, vmax=most, aspect="auto")
    layers, heads = values.shape
    axes.set_xticks(range(heads), range(1, heads + 1))
    axes.set_yticks(range(layers), range(1, layers + 1))
    axes.tick_params(length=0)
    for layer, head in np.ndindex(values.shape):
        value = values[layer, head]
        share = (value - least) / (most - least) if most > least else 0.0
        colour = ink_on(theme, share)
        text = f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
        axes.text(head, layer, text, ha="center", va="center", color=colour, fontsize=SMALL - 1)
