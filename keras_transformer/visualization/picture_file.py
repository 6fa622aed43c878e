"""Write pictures to files, or show them below the cells of a notebook."""

import contextlib
import dataclasses
import importlib
import io
import pathlib
import sys
import warnings
from collections.abc import Callable

from keras_transformer.visualization.theme import FONTS, THEMES, settings
from pipelines import needing
from pipelines.whole_files import write_whole

FORMS = ("png", "svg")
DPI = 130
# Most pixels of a PNG, which take half a gigabyte of memory.
MOST_PIXELS = 2**27


def form_of(path: str | pathlib.Path) -> str:
    """Return the format of a picture's file, "png" or "svg", from its name."""
    form = pathlib.Path(path).suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise ValueError(
            f"--output must be a file that ends in .png or .svg. Received: --output={path}. "
            "Try --output=picture.svg."
        )
    with needing("plots", "a picture"):
        importlib.import_module("matplotlib")
    return form


def write_picture(path: str | pathlib.Path, draw: Callable, theme: str) -> None:
    """Draw a picture into a file, which appears complete or not at all."""
    form = form_of(path)
    # Without the time of writing, and with ids that are not random, equal pictures are equal files.
    metadata = {"Date": None} if form == "svg" else {}

    def save(temporary):
        figure.savefig(temporary, format=form, dpi=DPI, metadata=metadata)

    with settings(THEMES[theme]), _missing_letters_counted():
        figure = draw(THEMES[theme])
        width, height = figure.get_size_inches() * DPI
        if form == "png" and width * height > MOST_PIXELS:
            raise ValueError(
                f"--output={path} would have {width:,.0f} x {height:,.0f} pixels, more than "
                f"{MOST_PIXELS:,}. Let it end in .svg, or draw less."
            )
        write_whole(pathlib.Path(path).resolve(), save)


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A picture that Jupyter shows where it is the last value of a cell.

    Args:
        draw: takes a `Theme` and returns a matplotlib figure.
        theme: "light" or "dark".

    Example:
        Drawing(functools.partial(draw_matrix, columns, rows, weights))
    """

    draw: Callable
    theme: str = "light"

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with settings(THEMES[self.theme]):
            self.draw(THEMES[self.theme]).savefig(file, format="png", dpi=DPI)
        return file.getvalue()


@contextlib.contextmanager
def _missing_letters_counted():
    """Print one warning for all letters that no font has, in place of matplotlib's for each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing = {str(record.message).split()[1] for record in caught if _is_of_glyph(record)}
    if missing:
        print(
            f"warning: no installed font of {', '.join(FONTS)} has {len(missing)} of the letters. "
            "Install one that has them.",
            file=sys.stderr,
        )
    for record in caught:
        if not _is_of_glyph(record):
            warnings.warn_explicit(record.message, record.category, record.filename, record.lineno)


def _is_of_glyph(warning):
    return str(warning.message).startswith("Glyph ")
