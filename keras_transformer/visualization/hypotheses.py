"""The best hypotheses of a search as a tree, from left to right; a common beginning is one branch
(Vaswani et al. 2017, section 6.1, for the search).
"""

import dataclasses
import functools
import textwrap
from collections.abc import Mapping, Sequence

from keras_transformer.visualization.attended import SPECIAL, plain_text
from keras_transformer.visualization.attention_pictures import OfALine
from keras_transformer.visualization.theme import SMALL, TEXT, Theme, new_canvas, width_of
from pipelines.vocabularies.vocabulary import SPACE

# Characters of a line in a box.
COLUMNS = 30
# Inches.
LINE = 0.18
BETWEEN_ROWS = 0.16
BETWEEN_COLUMNS = 0.45
MARGIN = 0.25


class Hypotheses(OfALine):
    """The hypotheses as a tree."""

    def measure(self, model: str, search: Mapping):
        from keras_transformer.decoding.remembered_options import kept_in, options_of_run
        from keras_transformer.inference.translator import Translator
        from keras_transformer.runs.model_path import ModelPath

        line = self.required_line()
        paths = ModelPath.listed(model)
        if any(path.version or path.is_portable for path in paths):
            raise ValueError(
                "--picture=n_best needs the pieces of several hypotheses, which an export does not "
                "return. Name the folder of a run."
            )
        # Draw every hypothesis that the search ends with.
        options = options_of_run(search, kept_in(paths[0].describe()))
        count = {"num_hypotheses": options.samples or options.beam().beam_size}
        translator = Translator.load(model, **{**count, **search})
        [hypotheses] = translator.translate_in_detail([line])
        if not hypotheses:
            raise ValueError(f"--line={line!r} has no visible character, and no translation.")
        return functools.partial(draw, tree(hypotheses))


@dataclasses.dataclass(frozen=True)
class Branch:
    """Pieces that some hypotheses share after those of the parent branch, and their box.

    Attributes:
        pieces: the pieces, as strings.
        log_probability: the sum of their log P, in nats.
        branches: the continuations, the best hypothesis' first; none at the end.
        ranks: ranks of the hypotheses that share the pieces; 1 is the best.
        score: the score of the hypothesis that ends here; None if none does.
    """

    pieces: list[str]
    log_probability: float
    branches: list["Branch"]
    ranks: list[int]
    score: float | None

    @functools.cached_property
    def text(self) -> str:
        """The text in the box, wrapped to lines."""
        text = plain_text("".join(SPECIAL.get(piece, piece) for piece in self.pieces))
        text = text.replace("(end)", " (end)").strip() if self.pieces else "(start)"
        if self.pieces and self.pieces[0] not in SPECIAL:
            # A branch that begins inside a word is marked.
            text = text if self.pieces[0].startswith(SPACE) else f"~{text}"
        return "\n".join(textwrap.wrap(text, COLUMNS) or [text])

    @functools.cached_property
    def note(self) -> str:
        """The note below the text."""
        note = f"log P {self.log_probability:.2f}"
        if self.score is None:
            return note
        numbers = ", ".join(f"{rank}" for rank in self.ranks)
        return f"{note}   no. {numbers}, score {self.score:.3f}"

    @functools.cached_property
    def width(self) -> float:
        lines = [width_of(line, TEXT) for line in self.text.split("\n")]
        return max(width_of(self.note, SMALL), *lines)

    @functools.cached_property
    def height(self) -> float:
        return LINE * (self.text.count("\n") + 2)

    @functools.cached_property
    def below(self) -> float:
        """The height of all branches that follow."""
        return sum(branch.block for branch in self.branches)

    @functools.cached_property
    def block(self) -> float:
        """The height of the branch with all that follows it."""
        return max(self.height + BETWEEN_ROWS, self.below)


def tree(hypotheses: Sequence) -> Branch:
    """Join hypotheses, best first, by their common beginnings. The root may be empty."""
    return _branch(list(enumerate(hypotheses, 1)), 0)


def _branch(ranked, start):
    """Join pairs (rank, hypothesis) that are equal before piece `start`."""
    first = ranked[0][1]
    end = start
    while (
        end < len(first.pieces)
        and len({tuple(hypothesis.pieces[end : end + 1]) for _, hypothesis in ranked}) == 1
    ):
        end += 1
    groups = {}
    for rank, hypothesis in ranked:
        if end < len(hypothesis.pieces):
            groups.setdefault(hypothesis.pieces[end], []).append((rank, hypothesis))
    return Branch(
        first.pieces[start:end],
        sum(first.log_probabilities[start:end]),
        [_branch(group, end) for group in groups.values()],
        [rank for rank, _ in ranked],
        None if groups else first.score,
    )


@dataclasses.dataclass(frozen=True)
class Box:
    """A branch with the place of its box: left side and middle, in inches from the upper left."""

    branch: Branch
    left: float
    middle: float
    parent: "Box | None"

    @property
    def right(self) -> float:
        return self.left + max(self.branch.width, 0.05)


def boxes(root: Branch) -> list[Box]:
    """Place each branch so that no boxes touch. The first box is the root's."""
    widths = _widths(root)
    placed = []

    def place(branch, depth, top, parent):
        left = MARGIN + sum(widths[:depth]) + BETWEEN_COLUMNS * depth
        box = Box(branch, left, top + branch.block / 2, parent)
        placed.append(box)
        below = top + (branch.block - branch.below) / 2
        for child in branch.branches:
            place(child, depth + 1, below, box)
            below += child.block

    place(root, 0, MARGIN, None)
    return placed


def _widths(root):
    """Return the width of each column of boxes."""
    widths = []
    level = [root]
    while level:
        widths.append(max(branch.width for branch in level))
        level = [child for branch in level for child in branch.branches]
    return widths


def draw(root: Branch, theme: Theme):
    """Draw boxes of words, each with log P of its words given those before, in nats, and at the end
    of a hypothesis with its rank and score.
    """
    placed = boxes(root)
    width = max(box.right for box in placed) + MARGIN
    lowest = max(box.middle + box.branch.height / 2 for box in placed) + MARGIN
    figure, axes = new_canvas(width, max(lowest, 2 * MARGIN + root.block))
    for box in placed:
        branch = box.branch
        if box.parent:
            _draw_edge(axes, box, theme)
        colour = theme.series[0] if 1 in branch.ranks else theme.ink
        top = box.middle - branch.height / 2
        lines = branch.text.count("\n") + 1
        axes.text(box.left, top, branch.text, va="top", color=colour, linespacing=1.25)
        note_at = top + LINE * lines + 0.02
        axes.text(box.left, note_at, branch.note, va="top", color=theme.soft, fontsize=SMALL)
    return figure


def _draw_edge(axes, box, theme):
    start = box.parent.right + 0.06
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
