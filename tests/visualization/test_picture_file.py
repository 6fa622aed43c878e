"""Pictures are whole, in a file or a notebook, and what cannot be drawn is told."""

import functools
import io

import numpy as np
import pytest

from keras_transformer.visualization import picture_file, theme
from keras_transformer.visualization.attention_pictures import draw_matrix
from keras_transformer.visualization.picture_file import Drawing, form_of, write_picture
from keras_transformer.visualization.theme import THEMES

image = pytest.importorskip("matplotlib.image")


def dot(colours):
    figure = theme.new_figure(1, 1)
    figure.add_subplot().plot([0], [0], "o", color=colours.series[0], label="$x")
    figure.legend()
    return figure


def test_a_picture_is_whole_and_equal_pictures_are_equal_files(tmp_path):
    for name in ("a.svg", "b.svg", "c.png"):
        write_picture(tmp_path / name, dot, "dark")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.svg").read_text().rstrip().endswith("</svg>")
    assert THEMES["dark"].paper in (tmp_path / "a.svg").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "c.png").read_bytes().endswith(b"IEND\xaeB`\x82")
    assert len(list(tmp_path.iterdir())) == 3


def test_letters_that_no_font_has_are_told_in_one_line(tmp_path, capsys):
    def draw(text):
        figure = theme.new_figure(1, 1)
        figure.text(0, 0, text)
        return figure

    # Private use: no font has them.
    write_picture(tmp_path / "a.png", lambda colours: draw("\ue000\ue001 a \ue000"), "light")
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "warning: no installed font of DejaVu Sans, " in told
    assert "has 2 of the letters" in told
    write_picture(tmp_path / "b.png", lambda colours: draw("a"), "light")
    assert capsys.readouterr().err == ""


def test_a_picture_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_picture(tmp_path / "a.svg", lambda colours: 1 / 0, "light")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["-", "a.pdf", "png", "a.svg.gz"])
def test_another_kind_of_file_is_refused(name):
    with pytest.raises(ValueError, match=r"--output must be a file that ends in .png or .svg"):
        form_of(name)


def test_a_missing_matplotlib_is_told_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(picture_file.importlib.util, "find_spec", lambda name: None)
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
