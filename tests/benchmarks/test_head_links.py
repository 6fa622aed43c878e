"""Links of heads are counted as the trees and the weights say."""

import numpy as np

from benchmarks.paper.head_links import (
    Links,
    links_to_nouns,
    long_links,
    pronouns_with_nouns,
    strongest,
)
from pipelines.trees import parse


def test_a_pronoun_has_the_last_noun_of_the_nearest_phrase():
    tree = parse(
        "(S (PRP It) (NP (NP (DT the) (NN cat)) (PP (IN of) (NP (NN mice) (CD 3)))) (VBZ sees) "
        "(NP (PRP$ its) (NN tail)) (NP (CD 3)) (VBD ate) (NP (PRP it)))"
    )
    assert pronouns_with_nouns(tree) == [(7, 4), (11, 8)]


def test_heads_that_reach_back_are_told_from_one_that_finds():
    n = 12
    back = (np.arange(n) - 3) % n
    finds = np.where(np.arange(n) == 9, 2, back)
    weights = np.eye(n) + 0.5 * np.eye(n)[np.stack([back, finds])]
    found = [Links(strongest(weights)[None], [(9, 2)]), Links(strongest(weights)[None], [(8, 5)])]
    hits, expected, count = links_to_nouns(found)
    assert count == 2
    np.testing.assert_array_equal(hits, [[0.5, 1]])
    # Three back: all words from the fourth on, but for the ninth of the second head.
    np.testing.assert_allclose(expected, [[0.5, (8 / 9 + 1 / 5) / 2]])
    far, drawn = long_links(found, 5)
    np.testing.assert_allclose(far, [[3 / 12, 4 / 12]])
    places = np.arange(n)
    distances = np.abs(places[:, None] - places)
    np.testing.assert_allclose(drawn, (distances > 5).sum() / (n * (n - 1)))
