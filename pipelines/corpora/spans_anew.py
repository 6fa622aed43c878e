"""Cut other spans out of a text each time that it comes, so that a model learns to restore all of
it (Raffel et al. 2020, section 3.1.4, whose text hardly ever comes twice).

They are cut in the graph of tf.data. The random numbers follow from the seed and the place in the
stream, as in `vocabularies.segmentation`. Shapes: B sentences.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pipelines.corpora.parallel_text import ParallelText
from pipelines.corpora.spans import SENTINELS, cut, restored
from pipelines.random_numbers import nth_draw
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.segmentation import OtherVersion, Variation
from pipelines.vocabularies.vocabulary import Vocabulary

# The number of this random draw, so that it is independent of others.
SPANS = 7
# Both sides' graphs call one function, because tracing it takes a second.
ARGUMENTS = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.uint64)]
_cut = tf.function(cut, ARGUMENTS, autograph=False)


def whole_texts(text: ParallelText, tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the tag before each source, with a space, and the text that spans were cut out of;
    both "" for a pair whose target is no list of spans.
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
    """Replaces the spans of pairs by other ones; pairs of other tasks stay.

    Each side has an object of its own, with equal arguments except `side`: 0 for sources, 1 for
    targets. `texts` are the results of `whole_texts`. A pair stays as it is if a new side would
    have more than `longest` tokens.
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
        self._heads, self._wholes = map(tf.constant, texts)
        self._vocabularies = (vocabulary.source, vocabulary.target)

    def alternatives(self, plain, rows, keys):
        whole = tf.gather(self._wholes, rows)
        is_new = whole != ""
        # `_cut` needs two words, even where its result is not used.
        source, target = _cut(tf.where(is_new, whole, "a b"), nth_draw(keys, SPANS))
        texts = (tf.gather(self._heads, rows) + source, target)
        pairs = zip(self._vocabularies, texts, strict=True)
        sides = [vocabulary.tokenize(text) for vocabulary, text in pairs]
        for side in sides:
            is_new &= side.row_lengths() <= self.longest
        return sides[self._side], is_new
