"""The light and the dark theme of all pictures: colours, fonts and sizes."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator

from pipelines.options import Options, option

# Sizes of text, in points.
TEXT = 10
SMALL = 8
# Most letters of a word beside a map.
LONGEST = 24
# Styles of lines: when all colours are used up, lines are dashed, then dotted.
STYLES = ("-", "--", ":")
# DejaVu comes with matplotlib; the Noto fonts, if installed, have letters that it lacks.
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)


@dataclasses.dataclass(frozen=True)
class Theme:
    """Colours of a picture, each "#rrggbb".

    Attributes:
        paper: the background.
        ink: text.
        soft: ticks, notes and edges of a tree.
        line: frames and grids.
        series: lines and bars, in order. The colour-blind can tell them apart (the first follow
            Okabe and Ito 2008, "Color Universal Design").
        shades: from 0, which is the paper, to the largest value.
        opposites: from the most negative value, over the paper at 0, to the most positive one.
    """

    paper: str
    ink: str
    soft: str
    line: str
    series: tuple[str, ...]
    shades: tuple[str, ...]
    opposites: tuple[str, ...]


THEMES = {
    "light": Theme(
        paper="#ffffff",
        ink="#1f2328",
        soft="#667080",
        line="#d0d7de",
        series=(
            *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
            *("#4b0082", "#7a2a10", "#d9a400", "#2b2b2b"),
        ),
        shades=("#ffffff", "#9ecae1", "#2171b5", "#08306b"),
        opposites=("#7f3b08", "#e08214", "#ffffff", "#8073ac", "#2d004b"),
    ),
    "dark": Theme(
        paper="#14171b",
        ink="#e3e6ea",
        soft="#98a2b0",
        line="#343a43",
        series=(
            *("#56b4e9", "#e69f00", "#2fc79a", "#e58cc0"),
            *("#fff3b0", "#7d6bff", "#c8452c", "#8a8a8a"),
        ),
        shades=("#14171b", "#1f4e79", "#4f9bd9", "#d6ecff"),
        opposites=("#fdb863", "#8a5210", "#14171b", "#5e5a9e", "#c9c4f5"),
    ),
}


class ThemeOptions(Options):
    """Look."""

    theme: str = option("light", "Colours of the picture.", choices=tuple(THEMES))


@contextlib.contextmanager
def settings(theme: Theme) -> Iterator[None]:
    """Apply a theme to matplotlib while the block runs."""
    import matplotlib
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    of_text = ("text.color", "axes.labelcolor", "axes.titlecolor")
    of_ticks = ("xtick.labelcolor", "ytick.labelcolor")
    of_lines = ("axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
    of_paper = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    parameters = {
        "font.family": [font for font in FONTS if font in installed],
        **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), TEXT),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), SMALL),
        **dict.fromkeys((*of_text, *of_ticks), theme.ink),
        **dict.fromkeys(of_lines, theme.line),
        **dict.fromkeys(of_paper, theme.paper),
        "legend.frameon": False,
        "figure.constrained_layout.h_pad": 0.08,
        "figure.constrained_layout.w_pad": 0.08,
        # A "$" in a sentence does not begin a formula.
        "text.parse_math": False,
        "svg.hashsalt": "keras_transformer",
    }
    with matplotlib.rc_context(parameters):
        yield


def looks(theme: Theme, count: int) -> list[tuple[str, str]]:
    """Return a colour and a style for each of `count` lines, no two alike."""
    distinct = [(colour, style) for style in STYLES for colour in theme.series]
    if count > len(distinct):
        raise ValueError(
            f"a picture tells {len(distinct)} lines apart by colour and style. Received: {count}. "
            "Draw fewer, by --heads, --model or --schedules."
        )
    return distinct[:count]


def shades(theme: Theme, of: str = "shades"):
    """Return the colour map of values from 0, or with "opposites" of values on both sides of 0."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(of, getattr(theme, of))


def ink_on(theme: Theme, share: float) -> str:
    """Return the colour of text on the shade of a share in [0, 1]: ink or paper, by contrast."""
    from matplotlib.colors import to_hex

    ground = to_hex(shades(theme)(share))
    return max((theme.ink, theme.paper), key=lambda text: contrast(text, ground))


def contrast(colour: str, ground: str) -> float:
    """Return the contrast of two colours "#rrggbb", from 1 to 21 (WCAG 2.1)."""
    darker, brighter = sorted(map(_luminance, (colour, ground)))
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(colour):
    """Return the relative luminance of "#rrggbb" in [0, 1]."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@functools.cache
def width_of(text: str, size: float = TEXT) -> float:
    """Return the width of a line of text in inches, at a size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath, text_to_path

    # A text without ink, such as a zero-width space, has no path.
    vertices, _ = text_to_path.get_text_path(FontProperties(), text.strip())
    return TextPath((0, 0), text, size=size).get_extents().x1 / 72 if len(vertices) else 0.0


def shortened(words: Iterable[str]) -> list[str]:
    """Shorten words that a map has no room for to their beginning and an ellipsis."""
    return [f"{word[: LONGEST - 1]}…" if len(word) > LONGEST else word for word in words]


def new_figure(width: float, height: float):
    """Return an empty figure, sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def new_canvas(width: float, height: float):
    """Return an empty figure and its only axes, in inches from the upper left corner."""
    figure = new_figure(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    figure.set_layout_engine("none")
    return figure, axes
