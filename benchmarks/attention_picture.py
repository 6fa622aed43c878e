"""Draw what a translation attended to: `python -m benchmarks.attention_picture
--model=runs/home_assistant_en_de --plot=docs/attention.png`.

The weights are those of the decoder's attention to the source (Vaswani et al. 2017, section
3.2.3), the mean of the heads of the last layer but one, as `align` takes them. Pieces are joined to
words: a source word has the sum of its pieces' weights, a target word the mean of its pieces'
rows, so that each row still sums to 1. Needs matplotlib: the extra `benchmarks`.
"""

import numpy as np
from absl import app, flags

from keras_transformer import Translator

SPACE = "▁"
END = "(end)"
INK = "#1f2328"
PAPER = "#ffffff"

MODEL = flags.DEFINE_string(
    "model", "runs/home_assistant_en_de", "A run's folder, or a SavedModel."
)
LINE = flags.DEFINE_string(
    "line", "The username or email address of your HEOS Account.", "The line to translate."
)
PLOT = flags.DEFINE_string("plot", "attention.png", "File of the picture, .png or .svg.")


def words_of(pieces):
    """Join pieces to words.

    Args:
        pieces: strings, EOS the last; "▁" begins a word.

    Returns:
        (the words, `END` the last; for each piece the number of its word).
    """
    words = []
    numbers = []
    for piece in pieces[:-1]:
        if piece.startswith(SPACE) or not words:
            words.append("")
        words[-1] += piece.removeprefix(SPACE)
        numbers.append(len(words) - 1)
    return [*words, END], [*numbers, len(words)]


def between_words(attention):
    """Attention of target words to source words.

    Args:
        attention: what `Translator.attention` gives.

    Returns:
        (S' source words, T' target words, weights (T', S')); each row sums to 1.
    """
    layer = max(len(attention["cross"]) - 2, 0)
    pieces = attention["cross"][layer].mean(axis=0)
    sources, source_numbers = words_of(attention["source_pieces"])
    targets, target_numbers = words_of(attention["target_pieces"])
    to_sources = np.eye(len(sources))[source_numbers]
    to_targets = np.eye(len(targets))[target_numbers]
    means = to_targets.T / to_targets.sum(axis=0)[:, None]
    return sources, targets, means @ pieces @ to_sources


def draw(sources, targets, weights, path):
    """Draw weights (T', S') as a grid, a row for each target word, with its own background."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"text.color": INK, "axes.labelcolor": INK, "font.size": 11})
    pyplot.rcParams.update({"figure.facecolor": PAPER, "figure.constrained_layout.h_pad": 0.1})
    pyplot.rcParams["figure.constrained_layout.w_pad"] = 0.1
    size = (2.4 + 0.8 * len(sources), 1.5 + 0.42 * len(targets))
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(sources)), sources, rotation=30, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(targets)), targets)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=INK)
    for row, column in np.argwhere(weights >= 0.1):
        color = PAPER if weights[row, column] > 0.55 else INK
        label = f"{weights[row, column]:.2f}"
        axes.text(column, row, label, ha="center", va="center", color=color, fontsize=9)
    for side in axes.spines.values():
        side.set_color("#d0d7de")
    axes.set_xlabel("share of its attention that each target word (row) gives to a source word")
    figure.savefig(path, dpi=130)


def main(_):
    translator = Translator.load(MODEL.value)
    [translation] = translator.translate([LINE.value])
    print(translation)
    draw(*between_words(translator.attention(LINE.value, translation)), PLOT.value)


if __name__ == "__main__":
    app.run(main)
