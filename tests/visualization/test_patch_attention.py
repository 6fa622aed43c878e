"""Attention over patches on the picture."""

import numpy as np
import pytest

from keras_transformer.visualization import patch_attention
from keras_transformer.visualization.theme import THEMES, settings

colors = pytest.importorskip("matplotlib.colors")

WEIGHTS = np.array([[0.1, 0.4, 0.0], [0.2, 0.05, 0.05]])
PIXELS = np.arange(4 * 6, dtype=np.uint8).reshape(4, 6, 1)


def test_each_pixel_has_the_opacity_of_its_patch():
    found = patch_attention.overlay(WEIGHTS, (4, 6), "#d55e00")
    assert found.shape == (4, 6, 4)
    for row in range(4):
        for column in range(6):
            expected = WEIGHTS[row // 2, column // 2] / 0.4 * patch_attention.STRONGEST
            assert found[row, column, 3] == pytest.approx(expected)
    np.testing.assert_allclose(found[0, 0, :3], colors.to_rgb("#d55e00"))
    # Nothing attended to is nothing drawn.
    assert not patch_attention.overlay(0 * WEIGHTS, (4, 6), "#d55e00")[..., 3].any()


@pytest.mark.parametrize("channels", [1, 3])
def test_the_picture_is_drawn_once_alone_and_once_for_each_head(channels):
    pixels = np.repeat(PIXELS, channels, axis=-1)
    weights = np.stack([[WEIGHTS, WEIGHTS.max() - WEIGHTS]] * 3)
    theme = THEMES["light"]
    with settings(theme):
        figure = patch_attention.draw(pixels, weights, "a dog: 90 %", theme)
    shown = [[np.asarray(image.get_array()) for image in axes.images] for axes in figure.axes]
    assert [len(images) for images in shown] == [1, 2, 2, 0, 2, 2, 0, 2, 2]
    expected = pixels[..., 0] if channels == 1 else pixels
    assert all(np.array_equal(images[0], expected) for images in shown if images)
    # The two heads are told apart.
    np.testing.assert_array_equal(shown[1][1][..., 3], shown[4][1][..., 3])
    assert not np.array_equal(shown[1][1], shown[2][1])
