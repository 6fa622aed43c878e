"""Colours that all can tell apart."""

import itertools
import math

import numpy as np
import pytest

from keras_transformer.visualization import theme
from keras_transformer.visualization.theme import THEMES, contrast, ink_on, looks

colors = pytest.importorskip("matplotlib.colors")

# What is left of linear red, green and blue (Machado et al. 2009, table 1, severity 1).
SIGHTS = {
    "all colours": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
# The least distance in CIELAB of two colours that are told apart at a glance.
APART = 12


def lab(colour, sight):
    """CIELAB of "#rrggbb" as a sight sees it, white being D65."""
    parts = np.array(colors.to_rgb(colour))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHTS[sight]) @ linear, 0, 1)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(matrix) @ seen / [0.9505, 1, 1.089])
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def nearest(colours, sight):
    """The least distance of two colours."""
    points = [lab(colour, sight) for colour in colours]
    return min(math.dist(*pair) for pair in itertools.combinations(points, 2))


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("name", THEMES)
def test_all_can_tell_the_series_apart(name, sight):
    assert nearest(THEMES[name].series, sight) > APART


@pytest.mark.parametrize("name", THEMES)
def test_text_and_lines_stand_out(name):
    colours = THEMES[name]
    assert contrast(colours.ink, colours.paper) > 7
    assert contrast(colours.soft, colours.paper) > 4.5
    assert min(contrast(colour, colours.paper) for colour in colours.series) > 2
    for share in np.linspace(0, 1, 21):
        ground = colors.to_hex(theme.shades(colours)(share))
        assert contrast(ink_on(colours, share), ground) > 3.9


def test_contrast_is_what_the_web_s_rules_say():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_no_two_lines_look_alike():
    for one in THEMES.values():
        found = looks(one, 24)
        assert len(set(found)) == 24
        assert found[:8] == [(colour, "-") for colour in one.series]
        with pytest.raises(ValueError, match=r"tells 24 lines apart .* Received: 25\. Draw fewer"):
            looks(one, 25)
