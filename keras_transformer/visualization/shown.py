"""Pictures of Vaswani et al. 2017 and others below the cells of a notebook."""

import dataclasses
import io
from collections.abc import Callable

from keras_transformer.visualization.picture_file import DPI
from keras_transformer.visualization.theme import THEMES, settings


@dataclasses.dataclass(frozen=True)
class Shown:
    """A picture that Jupyter shows where it is the last value of a cell.

    Args:
        draw: takes a `Theme` and gives a matplotlib figure.
        theme: "light" or "dark".

    Example:
        Shown(functools.partial(attention_matrix.draw, columns, rows, weights))
    """

    draw: Callable
    theme: str = "light"

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with settings(THEMES[self.theme]):
            self.draw(THEMES[self.theme]).savefig(file, format="png", dpi=DPI)
        return file.getvalue()
