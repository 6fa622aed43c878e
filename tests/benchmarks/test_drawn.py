"""Benchmarks draw their pictures in the project's own look, light and dark."""

import re

import pytest

from benchmarks.paper.paper_table3 import PAPER
from keras_transformer.visualization.theme import THEMES

pytest.importorskip("matplotlib")
OF_LAYERS = {
    name: {
        "seconds": {256: 0.1 * scale, 512: 0.4 * scale, 1024: 1.6 * scale},
        "bytes": {256: 1e6 * scale, 512: 2e6 * scale, 1024: 4e6 * scale},
    }
    for name, scale in (("self-attention", 1.0), ("linear", 0.5))
}
OF_ROWS = {
    (row.removeprefix("table3/"), seed): {"perplexity": 9.0 - place / 10, "bleu": 20.0 + place / 5}
    for place, row in enumerate(PAPER)
    for seed in ("1", "2")
}
DRAWN = {
    "table1": OF_LAYERS,
    "table3": OF_ROWS,
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("benchmark", DRAWN)
def test_a_picture_has_the_colours_of_its_theme(benchmark_of, tmp_path, benchmark, theme):
    path = tmp_path / "picture.svg"
    module = benchmark_of(f"paper.{benchmark}", f"--theme={theme}")
    module.draw(DRAWN[benchmark], path, module.THEME.value)
    drawn = path.read_text(encoding="utf-8")
    # A power of ten is no formula: text is not parsed.
    assert "mathdefault" not in drawn
    colours = set(re.findall(r"#[0-9a-f]{6}", drawn))
    [other] = THEMES.keys() - {theme}
    assert {THEMES[theme].paper, *THEMES[theme].series[:2]} <= colours
    assert THEMES[other].paper not in colours


def test_rows_are_drawn_against_base(benchmark_of):
    module = benchmark_of("paper.table3", "--rows=table3/c_2_layers,table3/base")
    found = {("c_2_layers", "1"): 7.0, ("c_2_layers", "2"): 8.0, ("base", "1"): 5, ("base", "2"): 6}
    found = {name: {"perplexity": value} for name, value in found.items()}
    ours, theirs = module.against_base(found, "perplexity")
    assert ours == [2.0, 0.0]
    assert theirs == pytest.approx([6.11 - 4.92, 0.0])
