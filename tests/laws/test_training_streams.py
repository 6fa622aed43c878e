"""Law: a stream of training batches is the same wherever it is entered and in any number of parts:
what is drawn for an example follows from the seed and its place in the stream. A row is a kind of
examples, made from a seed, and the tokens of a batch.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from token_lists import assert_same_batches

from pipelines.batches import hidden_pieces, shifted_pictures
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs, token_ids
from pipelines.corpora.images import Split
from pipelines.corpora.parallel_text import ParallelText
from pipelines.corpora.spans import SENTINELS
from pipelines.corpora.spans import cut as cut_out
from pipelines.corpora.spans_anew import SpansAnew, whole_texts
from pipelines.corpora.terms import GivenTerms, with_terms
from pipelines.random_numbers import key
from pipelines.special_ids import Marks
from pipelines.vocabularies import learn
from pipelines.vocabularies.augmentation import AugmentedText
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.segmentation import BpeDropout
from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.token_ids import TokenIds

SOURCES = ["turn off the lights, please!", "the house is big", "a lamp is in the kitchen"]
TARGETS = ["schalte bitte die Lichter aus!", "das Haus ist groß", "eine Lampe ist in der Küche"]
TEXT = ParallelText(SOURCES * 3, TARGETS * 3)
PROTECTED = ProtectedSpans(("tags",), glossary_rate=0.1)
RANDOM = np.random.default_rng(0)
PICTURES = Split(RANDOM.integers(1, 256, (40, 5, 4, 2), np.uint8), np.arange(40) % 3)
# A first, a last and a hiding piece, in place of a vocabulary.
MARKS = Marks(2, 3, 4, "<mask>", np.arange(5, 105), None)
LENGTHS = np.arange(2, 31)
IDS = np.concatenate([[*RANDOM.integers(5, 105, length - 1), 3] for length in LENGTHS])


@functools.cache
def cut(kind="bpe"):
    """A vocabulary of the text, and the pairs."""
    size = 380 if kind == "bpe" else 330
    words = learn(TEXT.sources, TEXT.targets, "joint", size, (), kind, PROTECTED)
    return words, [token_ids(side, words) for side in (TEXT.sources, TEXT.targets)]


def plain(seed):
    return TokenizedPairs(*cut()[1]).examples()


def segmented(kind, segmentation, seed):
    words, sides = cut(kind)
    sampler = segmentation(words, 0.3, seed)
    return TokenizedPairs(*sides).examples({"source": sampler, "target": sampler})


def typed(seed):
    words, sides = cut()
    slips = AugmentedText(words, {"case": 0.5, "typos": 0.2}, seed, 1000)
    return TokenizedPairs(*sides).examples({"source": slips})


def with_given_terms(seed):
    words, sides = cut()
    sources = token_ids([*with_terms(TEXT, 1, ())], words)
    terms = GivenTerms(0.5, seed, sources, 1000, None)
    return TokenizedPairs(*sides).examples({"source": terms})


def with_spans(seed):
    texts = tf.constant(SOURCES * 3)
    both = cut_out(texts, key(1, np.arange(9)))
    sides = [[text.decode() for text in side.numpy()] for side in both]
    words = learn(*sides, "joint", 350, SENTINELS)
    wholes = whole_texts(ParallelText(*sides), ())
    both = enumerate(("source", "target"))
    anew = {name: SpansAnew(side, wholes, words, 100, seed) for side, name in both}
    return TokenizedPairs(*(token_ids(side, words) for side in sides)).examples(anew)


def hidden(seed):
    texts = TokenIds.of_lengths(IDS.astype(np.uint16), LENGTHS)
    return hidden_pieces.examples(texts, MARKS, hidden_pieces.Masking(MARKS, 105), seed)


def shifted(seed):
    return shifted_pictures.examples(PICTURES, positions=2, most=1, seed=seed)


KINDS = {
    "pairs": (plain, 80),
    "byte pairs that are left out": (functools.partial(segmented, "bpe", BpeDropout), 80),
    "sampled segmentations": (functools.partial(segmented, "unigram", SubwordRegularization), 80),
    "sources as people type them": (typed, 80),
    "terms with their translations": (with_given_terms, 80),
    "spans cut out anew": (with_spans, 80),
    "hidden pieces": (hidden, 100),
    "shifted pictures": (shifted, 20),
}


def read(iterator, count):
    return [tf.nest.flatten(batch) for batch in itertools.islice(iterator, count)]


def batches_of(kind, seed=3, parts=1):
    make, tokens = KINDS[kind]
    return training_batches(make(seed), tokens, seed=5, parts=parts)


@functools.cache
def first(kind):
    """The stream from its beginning, of more than an epoch."""
    batches = batches_of(kind)
    assert batches.updates_per_epoch < 7
    return read(batches.arrays(), 12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_the_same_wherever_it_is_entered(kind):
    later = batches_of(kind).dataset(7).as_numpy_iterator()
    assert_same_batches(read(later, 5), first(kind)[7:])


def joined(parts):
    """Inputs and labels of several batches as one; texts are as wide as the widest."""
    for column in zip(*((part[0], part[-2]) for part in parts), strict=True):
        if column[0].ndim == 2:
            width = max(array.shape[1] for array in column)
            column = [np.pad(array, [(0, 0), (0, width - array.shape[1])]) for array in column]
        yield np.concatenate(column)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_the_same_in_any_number_of_parts(kind):
    """So no random number depends on the other examples of a batch."""
    parts = read(batches_of(kind, parts=2).arrays(10), 6)
    whole = [(batch[0], batch[-2]) for batch in first(kind)[5:8]]
    assert_same_batches([joined(parts[at : at + 2]) for at in (0, 2, 4)], whole)


# The other kinds have this control in tests/pipelines.
@pytest.mark.parametrize(
    "kind", ["sources as people type them", "terms with their translations", "shifted pictures"]
)
def test_control_another_seed_draws_otherwise(kind):
    batches = read(batches_of(kind, seed=4).arrays(), 12)
    with pytest.raises(AssertionError):
        assert_same_batches(batches, first(kind))
