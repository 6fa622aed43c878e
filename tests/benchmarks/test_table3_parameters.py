"""Table 3's column of parameters: each row differs from base as in the paper, within 1 million."""

import pytest

from benchmarks.paper.paper_table3 import (
    BASE,
    FITTING_VOCABULARY,
    PAPER,
    VOCABULARY,
    hyperparameters,
    more_than_base,
)

COUNTED = [row for row, quoted in PAPER.items() if quoted.millions is not None]


def millions(row):
    """Section 3, added up, for `VOCABULARY` pieces. test_paper.py compares it with a model."""
    hp = hyperparameters(row)
    keys = hp.d_k or hp.d_model // hp.num_heads
    values = hp.d_v or hp.d_model // hp.num_heads
    attention = 2 * hp.d_model * hp.num_heads * (keys + values)
    feed_forward = 2 * hp.d_model * hp.d_ff + hp.d_ff + hp.d_model
    of_a_layer = 3 * attention + 2 * feed_forward + 10 * hp.d_model
    return (VOCABULARY * hp.d_model + hp.num_layers * of_a_layer) / 1e6


COUNTS = {row: millions(row) for row in PAPER}


def off_by(row, pieces):
    theirs = PAPER[row].millions - PAPER[BASE].millions
    return more_than_base(row, COUNTS, pieces) - theirs


@pytest.mark.parametrize("row", sorted(set(COUNTED) - {"big"}))
def test_a_row_differs_from_base_as_the_paper_s_with_41000_pieces(row):
    assert abs(off_by(row, FITTING_VOCABULARY)) < 1


def test_control_with_37000_pieces_the_wide_row_is_off_by_more():
    assert off_by("table3/c_d_model_1024", VOCABULARY) == pytest.approx(-2.23, abs=0.005)


def test_no_number_of_pieces_suits_both_rows_that_are_1024_wide():
    """They differ in d_ff alone: 12 networks, 2 * 1,024 + 1 weights for each inner unit."""
    wide = "table3/c_d_model_1024"
    assert COUNTS["big"] - COUNTS[wide] == pytest.approx(12 * 2048 * 2049 / 1e6)
    assert PAPER["big"].millions - PAPER[wide].millions == 45
    for pieces in (VOCABULARY, FITTING_VOCABULARY):
        assert off_by("big", pieces) - off_by(wide, pieces) == pytest.approx(5.36, abs=0.005)


def test_the_table_says_by_how_much_each_row_is_off(benchmark_of, monkeypatch, capsys):
    table3 = benchmark_of("paper.table3")
    monkeypatch.setattr(table3, "parameters", lambda: COUNTS)
    table3.print_parameters()
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split(" | ")[0]: line.strip("| ").split(" | ")[1:] for line in lines}
    assert rows["| table3/c_d_model_1024"] == [
        *("163.82", "168", "+103"),
        *("+100.77", "-2.23", "+102.82", "-0.18"),
    ]
    assert rows["| table3/a_1_head"][1:3] == ["", ""]
    assert "50.4 million" in lines[-1]
