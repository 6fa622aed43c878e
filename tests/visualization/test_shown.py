"""Pictures below the cells of a notebook."""

import functools
import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib import image

from keras_transformer.visualization import attention_matrix
from keras_transformer.visualization.shown import Shown
from keras_transformer.visualization.theme import THEMES


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_notebook_shows_a_picture_on_the_paper_of_its_theme(theme):
    draw = functools.partial(attention_matrix.draw, ["a", "b"], ["c"], np.array([[0.2, 0.8]]))
    pixels = image.imread(io.BytesIO(Shown(draw, theme)._repr_png_()))
    paper = [int(THEMES[theme].paper[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    assert np.abs(pixels[0, 0, :3] - paper).max() < 1e-2
    # Something is drawn.
    assert np.ptp(pixels[..., 0]) > 0.3
