"""The scores of a grid of searches are sacrebleu's, and the best search is chosen by rule."""

import functools

import pytest
import sacrebleu
from evaluation.systems import BAD, GOOD, REFERENCES, damaged

from keras_transformer.evaluation import tuning
from keras_transformer.evaluation.tuning import Grid

MIDDLE = damaged(seed=4, share=0.8)
# Translations by beam size and length penalty.
SYSTEMS = {1: {0.0: BAD, 0.6: BAD}, 4: {0.0: MIDDLE, 0.6: GOOD}}
BEAM_SIZES = functools.partial(tuning.beam_sizes_of, most=1000)


def grid(scores, beam_sizes=(1, 4), length_penalties=(0.0, 0.6)):
    return Grid(beam_sizes, length_penalties, scores)


def test_each_cell_is_the_quality_of_its_translations():
    calls = []

    def quality(translations):
        return sacrebleu.corpus_bleu(translations, [REFERENCES]).score

    def translate(beam_size, length_penalties):
        calls.append((beam_size, list(length_penalties)))
        systems = [SYSTEMS[beam_size][alpha] for alpha in length_penalties]
        return [list(row) for row in zip(*systems, strict=True)]

    scored = tuning.score_searches(translate, quality, [1, 4], [0.6, 0.0])
    assert calls == [(1, [0.6, 0.0]), (4, [0.6, 0.0])]
    expected = [[quality(SYSTEMS[size][alpha]) for alpha in (0.6, 0.0)] for size in (1, 4)]
    assert scored.scores == expected
    assert scored.best == (4, 0.6, scored.scores[1][0])


@pytest.mark.parametrize(
    ("scores", "best", "beam_sizes"),
    [
        ([[1.0, 2.0], [3.0, 2.5]], (4, 0.0, 3.0), (1, 4)),
        ([[1.0, 2.0], [1.0, 3.0]], (4, 0.6, 3.0), (1, 4)),
        # Of equal scores, the smallest beam's is best, and then the first penalty's.
        ([[2.0, 3.0], [3.0, 3.0]], (1, 0.6, 3.0), (1, 4)),
        ([[3.0, 3.0], [3.0, 3.0]], (1, 0.0, 3.0), (1, 4)),
        ([[3.0, 1.0], [3.0, 1.0]], (2, 0.0, 3.0), (8, 2)),
    ],
)
def test_the_best_is_the_highest(scores, best, beam_sizes):
    assert grid(scores, beam_sizes).best == best


def test_the_table_marks_the_best():
    assert grid([[7.0, 8.25], [10.5, 10.25]]).table().splitlines() == [
        "beam  alpha 0   alpha 0.6",
        "   1     7.00        8.25",
        "   4    10.50*      10.25",
    ]


@pytest.mark.parametrize(
    ("read", "texts", "numbers"),
    [
        (BEAM_SIZES, ["1", "12"], [1, 12]),
        (tuning.length_penalties_of, ["0", ".6", "1e0"], [0.0, 0.6, 1.0]),
    ],
)
def test_beam_sizes_and_length_penalties_are_read(read, texts, numbers):
    assert read(texts) == numbers


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (BEAM_SIZES, ["0"]),
        (BEAM_SIZES, ["1001"]),
        (BEAM_SIZES, ["2.5"]),
        (BEAM_SIZES, []),
        (BEAM_SIZES, ["4", "4"]),
        (tuning.length_penalties_of, ["-0.1"]),
        (tuning.length_penalties_of, ["nan"]),
        (tuning.length_penalties_of, ["inf"]),
        (tuning.length_penalties_of, ["0.6", "x"]),
        (tuning.length_penalties_of, ["0.6", "0.60"]),
    ],
)
def test_other_numbers_are_refused(read, texts):
    with pytest.raises(ValueError, match=r"joined by commas, each once\. Received: --") as raised:
        read(texts)
    assert str(raised.value).endswith(f"={','.join(texts)}.")
