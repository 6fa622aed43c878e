"""Pictures as files that are whole."""

import contextlib
import importlib.util
import pathlib
import sys
import warnings
from collections.abc import Callable

from keras_transformer.visualization.theme import FONTS, THEMES, settings
from pipelines.whole_files import write_whole

FORMS = ("png", "svg")
DPI = 130


def form_of(path: str | pathlib.Path) -> str:
    """What kind of file a picture is, "png" or "svg", by the end of its name.

    Raises:
        ValueError: if the name ends otherwise, or matplotlib is not installed.
    """
    form = pathlib.Path(path).suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise ValueError(
            f"--output must be a file that ends in .png or .svg. Received: --output={path}. "
            "Try --output=picture.svg."
        )
    if not importlib.util.find_spec("matplotlib"):
        raise ValueError(
            "pictures need matplotlib, which is not installed: pip install "
            "'keras-transformer-nmt[plots]'"
        )
    return form


def write_picture(path: str | pathlib.Path, draw: Callable, theme: str) -> None:
    """Draw a picture into a file, whole or not at all.

    Args:
        path: the file, .png or .svg.
        draw: takes a `Theme` and gives a matplotlib figure.
        theme: "light" or "dark".

    Raises:
        ValueError: as `form_of`.
    """
    form = form_of(path)
    # An SVG without the time and with ids that are not drawn by chance: equal pictures are equal
    # files.
    metadata = {"Date": None} if form == "svg" else {}

    def save(temporary):
        figure.savefig(temporary, format=form, dpi=DPI, metadata=metadata)

    with settings(THEMES[theme]), _glyphs_told_once():
        figure = draw(THEMES[theme])
        write_whole(path, save)


@contextlib.contextmanager
def _glyphs_told_once():
    """One line for all letters that no font has, where matplotlib warns of each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing = {str(one.message).split()[1] for one in caught if _is_of_glyph(one)}
    if missing:
        print(
            f"warning: no installed font of {', '.join(FONTS)} has {len(missing)} of the letters. "
            "Install one that has them.",
            file=sys.stderr,
        )
    for one in caught:
        if not _is_of_glyph(one):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _is_of_glyph(warning):
    return str(warning.message).startswith("Glyph ")
