"""Which kept scores of table 3 are set beside each other."""

import pytest

from benchmarks.paper.paper_table3 import comparable


def scored(**other):
    same = {"steps": 2000, "text": "a", "batch_tokens": 1024, "arithmetic": "float32"}
    return {**same, "bleu": 1.0, **other}


@pytest.mark.parametrize(
    "other",
    [{"steps": 500}, {"text": "b"}, {"batch_tokens": 512}, {"arithmetic": "mixed_bfloat16"}],
)
def test_only_scores_of_equal_updates_are_averaged(other):
    kept = {"base-1": scored(), "base-2": scored(**other), "big-1": scored(), "big-2": scored()}
    found, left_out = comparable(kept)
    assert found == {"table3/base": [kept["base-1"]], "big": [kept["big-1"], kept["big-2"]]}
    assert left_out == ["base-2"]


def test_all_seeds_of_equal_updates_are_taken():
    kept = {f"a_1_head-{seed}": scored() for seed in (1, 2)}
    assert comparable(kept) == ({"table3/a_1_head": list(kept.values())}, [])


def test_what_is_no_row_is_left_out_and_nothing_kept_is_nothing_found():
    assert comparable({"recurrent-1": scored()}) == ({}, ["recurrent-1"])
    assert comparable({}) == ({}, [])
