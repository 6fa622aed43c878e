"""Draw a tree of hypotheses, from left to right."""

import dataclasses
import textwrap

from keras_transformer.visualization.hypothesis_tree import Branch
from keras_transformer.visualization.theme import SMALL, TEXT, Theme, new_figure, width_of
from keras_transformer.visualization.words import SPACE, SPECIAL, shown

# Characters of a line in a box, and inches.
COLUMNS = 30
LINE = 0.18
BETWEEN_ROWS = 0.16
BETWEEN_COLUMNS = 0.45
MARGIN = 0.25


@dataclasses.dataclass(frozen=True)
class Box:
    """A branch with its place, in inches from the upper left corner.

    Attributes:
        branch: what it shows.
        text: its words, in lines.
        note: what stands below them.
        left, middle: its left side and the height of its middle.
        width, height: its size.
        parent: the box before it, or None.
    """

    branch: Branch
    text: str
    note: str
    left: float
    middle: float
    width: float
    height: float
    parent: "Box | None"


def boxes(root: Branch) -> list[Box]:
    """Give each branch a place, so that no box touches another. The first is the root's."""
    widths = _widths(root)
    placed = []

    def place(branch, depth, top, parent):
        text, note = _words(branch)
        height = _height(branch)
        left = MARGIN + sum(widths[:depth]) + BETWEEN_COLUMNS * depth
        block = _block(branch)
        size = (max(_width(branch), 0.05), height)
        box = Box(branch, text, note, left, top + block / 2, *size, parent)
        placed.append(box)
        below = top + (block - _sum_of_blocks(branch)) / 2
        for one in branch.branches:
            place(one, depth + 1, below, box)
            below += _block(one)

    place(root, 0, MARGIN, None)
    return placed


def draw(root: Branch, theme: Theme):
    """Boxes of words with log P of what is in them, in nats, given what is before; at the end of
    each hypothesis its rank and score.
    """
    placed = boxes(root)
    width = max(box.left + box.width for box in placed) + MARGIN
    height = max(box.middle + box.height / 2 for box in placed) + MARGIN
    figure = new_figure(width, max(height, 2 * MARGIN + _block(root)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(max(height, 2 * MARGIN + _block(root)), 0))
    axes.set_axis_off()
    figure.set_layout_engine("none")
    for box in placed:
        if box.parent:
            _edge(axes, box, theme)
        colour = theme.series[0] if 1 in box.branch.ranks else theme.ink
        top = box.middle - box.height / 2
        lines = box.text.count("\n") + 1
        axes.text(box.left, top, box.text, va="top", color=colour, linespacing=1.25)
        note_at = top + LINE * lines + 0.02
        axes.text(box.left, note_at, box.note, va="top", color=theme.soft, fontsize=SMALL)
    return figure


def _edge(axes, box, theme):
    start = box.parent.left + box.parent.width + 0.06
    end = box.left - 0.08
    middle = (start + end) / 2
    is_best = 1 in box.branch.ranks
    axes.plot(
        (start, middle, middle, end),
        (box.parent.middle, box.parent.middle, box.middle, box.middle),
        color=theme.series[0] if is_best else theme.soft,
        linewidth=1.6 if is_best else 0.9,
        zorder=2 if is_best else 1,
        solid_joinstyle="round",
    )


def _words(branch):
    """The text of a box and the note below it."""
    text = shown("".join(SPECIAL.get(piece, piece) for piece in branch.pieces))
    text = text.replace("(end)", " (end)").strip() if branch.pieces else "(start)"
    if branch.pieces and branch.pieces[0] not in SPECIAL:
        # A branch that begins inside a word is marked.
        text = text if branch.pieces[0].startswith(SPACE) else f"~{text}"
    note = f"log P {branch.log_probability:.2f}"
    if branch.score is not None:
        numbers = ", ".join(f"{rank}" for rank in branch.ranks)
        note = f"{note}   no. {numbers}, score {branch.score:.3f}"
    return "\n".join(textwrap.wrap(text, COLUMNS) or [text]), note


def _width(branch):
    text, note = _words(branch)
    return max(width_of(note, SMALL), *(width_of(line, TEXT) for line in text.split("\n")))


def _height(branch):
    text, _ = _words(branch)
    return LINE * (text.count("\n") + 2)


def _block(branch):
    """How high a branch is with all that follows it."""
    return max(_height(branch) + BETWEEN_ROWS, _sum_of_blocks(branch))


def _sum_of_blocks(branch):
    return sum(_block(one) for one in branch.branches)


def _widths(root):
    """The width of each column of boxes."""
    widths = []
    level = [root]
    while level:
        widths.append(max(_width(branch) for branch in level))
        level = [one for branch in level for one in branch.branches]
    return widths
