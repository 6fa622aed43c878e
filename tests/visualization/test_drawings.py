"""Drawings show every number that they get, and no text overlaps another. Pictures are complete in
a file or a notebook, and what cannot be drawn is refused.
"""

import functools
import io
import itertools
import math
import sys

import numpy as np
import pytest

from keras_transformer.visualization import (
    charts,
    head_maps,
    length_charts,
    patch_maps,
    position_maps,
    theme,
    tree_drawings,
)
from keras_transformer.visualization.attended import Attended
from keras_transformer.visualization.attention_pictures import (
    LEAST_LINE,
    draw_lines,
    draw_maps,
    draw_matrix,
    rows_of,
)
from keras_transformer.visualization.charts import Panel
from keras_transformer.visualization.length_charts import count
from keras_transformer.visualization.picture_file import Drawing, form_of, write_picture
from keras_transformer.visualization.position_maps import Map
from keras_transformer.visualization.theme import THEMES, contrast, ink_on, looks, settings
from pipelines.trees import Tree, parse

pytest.importorskip("matplotlib")

WORDS = [f"{'word' * (1 + number % 3)}{number}" for number in range(40)]
LONG = "Donaudampfschifffahrtsgesellschaftsvorsitzender" * 2
RANDOM = np.random.default_rng(1)
# A zero-width space and a soft hyphen.
INKLESS = "\u200b\u00ad"
LIGHT = THEMES["light"]


def attended(words, layers=1, heads=2):
    count = len(words)
    return Attended("cross", words, words, RANDOM.dirichlet(np.ones(count), (layers, heads, count)))


def counts():
    pairs = np.exp(RANDOM.normal(2.5, 0.6, (3000, 1))) * np.exp(RANDOM.normal(0, 0.2, (3000, 2)))
    return length_charts.count(np.clip(np.rint(pairs), 2, 80).astype(int), 400)


def tree_over(words):
    """A binary tree over words, whose labels are wider than the words."""
    row = [Tree("XX", (word,)) for word in words]
    while len(row) > 1:
        pairs = zip(row[::2], [*row[1::2], None], strict=False)
        row = [Tree("CONSTITUENT", tuple(filter(None, pair))) for pair in pairs]
    return row[0]


HEADS = {
    "distance": {stack: 99 * RANDOM.random((3, 8)) for stack in ("encoder", "cross")},
    "in its phrase": {"encoder": RANDOM.random((3, 8))},
}
ADDED = Map("encoder, layer 1: added to the key", RANDOM.normal(size=(4, 9)), "head", "distance")
CURVES = [
    Panel("validation cross-entropy, nats a token", "step", {name: ([1, 9], [1, 2])})
    for name in ("a_long_name_of_a_run", "b", "c_another_name")
]
TREES = [tree_over(WORDS), parse("(S (SBARQ (VP (V a))) (XX b))"), parse("(XX c)")]
# A function and its arguments but for the theme.
DRAWINGS = {
    "maps of 40 words": (draw_maps, attended(WORDS)),
    "maps of 6 words": (draw_maps, attended(WORDS[:6], 2)),
    "lines of 40 words": (draw_lines, attended(WORDS, heads=8), 0, range(8), range(40)),
    "matrix of 40 words": (draw_matrix, WORDS, WORDS, attended(WORDS).weights[0, 0]),
    "matrix of one word": (draw_matrix, ["(end)"], ["a"], np.ones((1, 1))),
    "matrix of a long word": (draw_matrix, [*WORDS[:4], LONG], [LONG, "a"], np.full((2, 5), 0.2)),
    "heads": (head_maps.draw, HEADS),
    "one head": (head_maps.draw, {"on EOS, start": {"cross": np.ones((1, 1))}}),
    "positions": (position_maps.draw, [ADDED] * 4),
    "curves": (charts.draw, CURVES),
    "lengths": (length_charts.draw, counts()),
    "trees": (tree_drawings.draw, TREES),
    "matrix of words without ink": (draw_matrix, ["a", *INKLESS], [*INKLESS], np.eye(2, 3)),
    "tree of words without ink": (tree_drawings.draw, [tree_over(["a", *INKLESS])]),
}
TAKE_LONG = ("maps of 40 words", "heads", "positions", "lengths")


def corners(text, renderer):
    """Corners of the rectangle that a text covers, rotated as the text is: (4, 2), pixels."""
    angle = text.get_rotation()
    text.set_rotation(0)
    box = text.get_window_extent(renderer)
    text.set_rotation(angle)
    # The box of the rotated text has the same middle as the rotated box of the text.
    extent = text.get_window_extent(renderer)
    middle = np.array([extent.x0 + extent.x1, extent.y0 + extent.y1]) / 2
    cosine = np.cos(np.deg2rad(angle))
    sine = np.sin(np.deg2rad(angle))
    half = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [box.width / 2, box.height / 2]
    return middle + half @ np.array([[cosine, sine], [-sine, cosine]])


def texts(figure):
    """(text, corners) of each text in a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure)
    written = []

    def draw(text, renderer):
        if text.get_visible() and text.get_text().strip(f" {INKLESS}"):
            written.append((text, corners(text, renderer)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", draw)
        figure.draw_without_rendering()
    return written


def overlap(first, second):
    """The least overlap of two rectangles over all directions, in pixels; below 0 they are apart
    (the theorem of the separating axis).
    """
    sides = np.concatenate([first[1:3] - first[:2], second[1:3] - second[:2]])
    axes = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    of_first = first @ axes.T
    of_second = second @ axes.T
    upper = np.minimum(of_first.max(axis=0), of_second.max(axis=0))
    return np.min(upper - np.maximum(of_first.min(axis=0), of_second.min(axis=0)))


def overlapping(written):
    """Pairs of texts, as `texts` returns them, that overlap by more than half a pixel."""
    return [
        (first.get_text(), second.get_text())
        for (first, area), (second, second_area) in itertools.combinations(written, 2)
        if overlap(area, second_area) > 0.5
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in TAKE_LONG else [])
        for name in DRAWINGS
    ],
)
def test_no_text_overlaps_another_or_leaves_the_picture(name):
    draw, *arguments = DRAWINGS[name]
    with settings(LIGHT):
        figure = draw(*arguments, LIGHT)
        written = texts(figure)
        assert overlapping(written) == []
        width, height = figure.canvas.get_width_height()
        for text, area in written:
            inside = np.all(area > -1) and np.all(area < [width + 1, height + 1])
            assert inside, (text.get_text(), area, width, height)


def test_control_overlapping_texts_are_found():
    with settings(LIGHT):
        figure = draw_matrix(WORDS, WORDS, attended(WORDS).weights[0, 0], LIGHT)
        figure.set_layout_engine("none")
        figure.set_size_inches(4, 3)
        assert overlapping(texts(figure))


def test_a_line_is_drawn_for_each_visible_weight():
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_hex

    attention = attended(WORDS[:5], heads=3)
    theme = THEMES["dark"]
    figure = draw_lines(attention, 0, [0, 2], [1, 3], theme)
    [lines] = figure.findobj(LineCollection)
    opacities = {}
    for path, ink in zip(lines.get_segments(), lines.get_edgecolors(), strict=True):
        head = [0, 2][theme.series.index(to_hex(ink[:3]))]
        opacities[head, round(path[0][1]), round(path[1][1])] = ink[3]
    expected = {
        (head, row, column): attention.weights[0, head, row, column]
        for head in (0, 2)
        for row in (1, 3)
        for column in range(5)
        if attention.weights[0, head, row, column] >= LEAST_LINE
    }
    assert opacities == pytest.approx(expected)


def test_an_absent_word_is_refused():
    attention = attended(["a", "b", "a"])
    assert rows_of(attention, "a") == [0, 2]
    assert rows_of(attention, None) == [0, 1, 2]
    with pytest.raises(ValueError, match="--from_word must be one of the words that attend: a b a"):
        rows_of(attention, "c")


def test_the_maps_show_the_weights():
    attention = attended(WORDS[:3], layers=2)
    figure = draw_maps(attention, LIGHT)
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(shown, attention.weights.reshape(4, 3, 3))


def test_a_long_word_widens_no_picture():
    def lines(attention, theme):
        return draw_lines(attention, 0, [0], [0], theme)

    for draw in (lines, draw_maps):
        sizes = [
            draw(attended(["a", word]), LIGHT).get_size_inches()
            for word in (LONG[:24], LONG, LONG * 2)
        ]
        np.testing.assert_allclose(sizes[1:], [sizes[0]] * 2, atol=0.2, err_msg=draw.__name__)


def test_a_picture_has_1_to_20_trees():
    with pytest.raises(ValueError, match=r"^a picture has room for 1 to 20 trees\. Received: 21 s"):
        tree_drawings.draw([parse("(XX c)")] * 21, LIGHT)
    with pytest.raises(ValueError, match=r"Received: 0 sentences\. Pass"):
        tree_drawings.draw([], LIGHT)


def test_a_weight_that_rounding_takes_above_1_is_drawn():
    weights = np.full((1, 1, 1, 1), np.float64(np.float32(0.6)) + np.float64(np.float32(0.4)))
    assert weights[0, 0, 0, 0] > 1
    attention = Attended("cross", ["a"], ["a"], weights)
    draw_lines(attention, 0, [0], [0], LIGHT)


def test_the_lines_of_24_heads_differ():
    figure = draw_lines(attended(WORDS[:3], heads=24), 0, range(24), [0], LIGHT)
    [legend] = figure.legends
    looks = {(line.get_color(), line.get_linestyle()) for line in legend.get_lines()}
    assert len(looks) == 24


def test_a_stack_that_the_first_measure_lacks_is_labelled():
    of_stacks = {"encoder": np.ones((1, 2)), "cross": np.ones((1, 2))}
    measures = {"distance": {"cross": np.ones((1, 2))}, "BLEU lost": of_stacks}
    figure = head_maps.draw(measures, LIGHT)
    names = [axes.get_ylabel() for axes in figure.axes if axes.axison]
    assert sorted(names) == ["", "cross\nlayer", "encoder\nlayer"]


def test_numbers_of_named_places_are_marks_that_no_line_joins():
    series = {"here": ([0, 1], [3, 5]), "paper": ([0, 1], [4, 1])}
    figure = charts.draw([Panel("BLEU", "", series, names=["base", "big"])], LIGHT)
    here, paper = figure.axes[0].lines
    assert {here.get_linestyle(), paper.get_linestyle()} == {"None"}
    assert here.get_marker() != paper.get_marker()
    # A control: numbers along an axis are joined.
    figure = charts.draw([Panel("BLEU", "step", series)], LIGHT)
    assert {line.get_marker() for line in figure.axes[0].lines} == {"None"}
    assert "None" not in {line.get_linestyle() for line in figure.axes[0].lines}


def test_buckets_hold_all_tokens_and_the_padding_that_they_report():
    random = np.random.default_rng(1)
    lengths = random.integers(2, 30, (500, 2))
    tally = count(lengths, 100)
    for bucket, shape in enumerate(tally.buckets.lengths):
        pairs = [
            pair for pair, of in zip(lengths, tally.buckets.bucket_of, strict=True) if of == bucket
        ]
        assert tally.tokens[bucket] == sum(source + target for source, target in pairs)
        assert tally.positions[bucket] == len(pairs) * (shape[0] + shape[1])
    assert tally.tokens.sum() == lengths.sum()
    padding = 1 - tally.tokens.sum() / tally.positions.sum()
    assert padding == pytest.approx(tally.buckets.padding)


def test_a_few_pairs_are_counted_in_plain_numbers():
    figure = length_charts.draw(count([[3, 4]] * 4 + [[5, 4]], 100), LIGHT)
    figure.canvas.draw()
    [bar] = [axes for axes in figure.axes if axes.get_ylabel() == "pairs"]
    labels = [tick.get_text() for tick in bar.get_yticklabels(minor=True)]
    assert {"2", "3", "4"} <= {*labels}
    assert "$" not in "".join(labels)


colors = pytest.importorskip("matplotlib.colors")

WEIGHTS = np.array([[0.1, 0.4, 0.0], [0.2, 0.05, 0.05]])
PIXELS = np.arange(4 * 6, dtype=np.uint8).reshape(4, 6, 1)


def test_each_pixel_has_the_opacity_of_its_patch():
    overlay = patch_maps.overlay(WEIGHTS, (4, 6), "#d55e00")
    assert overlay.shape == (4, 6, 4)
    for row in range(4):
        for column in range(6):
            expected = WEIGHTS[row // 2, column // 2] / 0.4 * patch_maps.STRONGEST
            assert overlay[row, column, 3] == pytest.approx(expected)
    np.testing.assert_allclose(overlay[0, 0, :3], colors.to_rgb("#d55e00"))
    # Without attention nothing is drawn.
    assert not patch_maps.overlay(0 * WEIGHTS, (4, 6), "#d55e00")[..., 3].any()


@pytest.mark.parametrize("channels", [1, 3])
def test_the_picture_is_drawn_once_alone_and_once_for_each_head(channels):
    pixels = np.repeat(PIXELS, channels, axis=-1)
    weights = np.stack([[WEIGHTS, WEIGHTS.max() - WEIGHTS]] * 3)
    with settings(LIGHT):
        figure = patch_maps.draw(pixels, weights, "a dog: 90 %", LIGHT)
    shown = [[np.asarray(image.get_array()) for image in axes.images] for axes in figure.axes]
    assert [len(images) for images in shown] == [1, 2, 2, 0, 2, 2, 0, 2, 2]
    expected = pixels[..., 0] if channels == 1 else pixels
    assert all(np.array_equal(images[0], expected) for images in shown if images)
    # The first head's overlay is the same in each layer, and the second head's is another.
    np.testing.assert_array_equal(shown[1][1][..., 3], shown[4][1][..., 3])
    assert not np.array_equal(shown[1][1], shown[2][1])


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
