"""Other spans of a text each time that it comes, so that a model learns to restore all of it
(Raffel et al. 2020, section 3.1.4, whose text hardly ever comes twice).

They are cut in the graph of tf.data, and what is drawn follows from the seed and the place in the
stream by counting, as in `vocabularies.segmentation`. Shapes: B sentences.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pipelines.corpora.parallel_text import ParallelText
from pipelines.corpora.spans import SENTINELS, cut, restored
from pipelines.random_numbers import drawn
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.segmentation import OtherVersion, Variation
from pipelines.vocabularies.vocabulary import Vocabulary

# The number of what is drawn, so that no other draw depends on it.
SPANS = 7
# One graph that those of both sides call: it takes a second to make.
ARGUMENTS = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.uint64)]
_cut = tf.function(cut, ARGUMENTS, autograph=False)


def whole_texts(text: ParallelText, tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The tag before each source, with a space, and the text that spans were cut out of; both "" of
    a pair whose target is no list of spans.
    """
    heads = np.full(len(text), "", object)
    wholes = heads.copy()
    for row, (source, target) in enumerate(zip(text.sources, text.targets, strict=True)):
        if target.startswith(SENTINELS[0]):
            first, _, rest = source.partition(" ")
            if first in tags and first not in SENTINELS:
                heads[row] = f"{first} "
                source = rest
            wholes[row] = restored(source, target)
    return heads, wholes


class SpansAnew(OtherVersion):
    """Give pairs of spans with other ones; those of other tasks stay.

    Both sides of a pair are given by one object each, with equal arguments but for `side`: 0 gives
    sources, 1 targets. `texts` are what `whole_texts` returns. A pair that a side would be longer
    of than `longest` tokens stays as it was.
    """

    def __init__(
        self,
        side: int,
        texts: Sequence[np.ndarray],
        vocabulary: Vocabulary | SeparateVocabularies,
        longest: int,
        seed: int,
        variation: Variation | None = None,
    ):
        super().__init__(seed, longest, variation)
        self._side = side
        self._heads, self._wholes = (tf.constant(some) for some in texts)
        self._vocabularies = (vocabulary.source, vocabulary.target)

    def alternatives(self, plain, rows, keys):
        whole = tf.gather(self._wholes, rows)
        is_new = whole != ""
        # What is not cut needs two words too.
        source, target = _cut(tf.where(is_new, whole, "a b"), drawn(keys, SPANS))
        texts = (tf.gather(self._heads, rows) + source, target)
        sides = [one.tokenize(text) for one, text in zip(self._vocabularies, texts, strict=True)]
        for side in sides:
            is_new &= side.row_lengths() <= self.longest
        return sides[self._side], is_new
