"""Pictures are complete in a file or a notebook, what cannot be drawn is refused, and everybody can
tell the colours apart.
"""

import functools
import io
import itertools
import math
import sys

import numpy as np
import pytest

from keras_transformer.visualization import theme
from keras_transformer.visualization.attention_pictures import draw_matrix
from keras_transformer.visualization.picture_file import Drawing, form_of, write_picture
from keras_transformer.visualization.theme import THEMES, contrast, ink_on, looks

colors = pytest.importorskip("matplotlib.colors")
image = pytest.importorskip("matplotlib.image")


def dot(colours):
    figure = theme.new_figure(1, 1)
    figure.add_subplot().plot([0], [0], "o", color=colours.series[0], label="$x")
    figure.legend()
    return figure


def test_a_picture_is_whole_and_equal_pictures_are_equal_files(tmp_path):
    (tmp_path / "b.svg").symlink_to("linked.svg")
    for name in ("a.svg", "b.svg", "c.png"):
        write_picture(tmp_path / name, dot, "dark")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.svg").read_text().rstrip().endswith("</svg>")
    assert THEMES["dark"].paper in (tmp_path / "a.svg").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "c.png").read_bytes().endswith(b"IEND\xaeB`\x82")
    whole = sorted(path.name for path in tmp_path.iterdir() if not path.is_symlink())
    assert whole == ["a.svg", "c.png", "linked.svg"]


def test_letters_that_no_font_has_give_one_line_of_warning(tmp_path, capsys):
    def draw(text):
        figure = theme.new_figure(1, 1)
        figure.text(0, 0, text)
        return figure

    # Private use: no font has them.
    write_picture(tmp_path / "a.png", lambda colours: draw("\ue000\ue001 a \ue000"), "light")
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert "warning: no installed font of DejaVu Sans, " in warning
    assert "has 2 of the letters" in warning
    write_picture(tmp_path / "b.png", lambda colours: draw("a"), "light")
    assert capsys.readouterr().err == ""


def test_a_picture_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_picture(tmp_path / "a.svg", lambda colours: 1 / 0, "light")
    message = r"^--output=.*a\.png would have 13,000 x 13,000 pixels, more than"
    with pytest.raises(ValueError, match=message):
        write_picture(tmp_path / "a.png", lambda colours: theme.new_figure(100, 100), "light")
    assert list(tmp_path.iterdir()) == []
    write_picture(tmp_path / "a.svg", lambda colours: theme.new_figure(100, 100), "light")


@pytest.mark.parametrize("name", ["-", "a.pdf", "png", "a.svg.gz"])
def test_another_kind_of_file_is_refused(name):
    with pytest.raises(ValueError, match=r"--output must be a file that ends in .png or .svg"):
        form_of(name)


def test_a_missing_matplotlib_is_refused_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'keras-transformer-nmt\[plots\]'"):
        form_of("a.png")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_notebook_shows_a_picture_on_the_paper_of_its_theme(theme):
    draw = functools.partial(draw_matrix, ["a", "b"], ["c"], np.array([[0.2, 0.8]]))
    pixels = image.imread(io.BytesIO(Drawing(draw, theme)._repr_png_()))
    paper = [int(THEMES[theme].paper[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    assert np.abs(pixels[0, 0, :3] - paper).max() < 1e-2
    # Something is drawn.
    assert np.ptp(pixels[..., 0]) > 0.3


# Colours that everybody can tell apart.
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
    perceived = np.clip(np.array(SIGHTS[sight]) @ linear, 0, 1)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(matrix) @ perceived / [0.9505, 1, 1.089])
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("name", THEMES)
def test_everybody_can_tell_the_series_apart(name, sight):
    points = [lab(colour, sight) for colour in THEMES[name].series]
    assert min(math.dist(*pair) for pair in itertools.combinations(points, 2)) > APART


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
    for colours in THEMES.values():
        lines = looks(colours, 24)
        assert len(set(lines)) == 24
        assert lines[:8] == [(colour, "-") for colour in colours.series]
        with pytest.raises(ValueError, match=r"tells 24 lines apart .* Received: 25\. Draw fewer"):
            looks(colours, 25)
