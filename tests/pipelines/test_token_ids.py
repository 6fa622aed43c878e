"""Packed ids: two arrays that stand for a list of lists."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.vocabularies.token_ids import ALIGNMENT, TokenIds, smallest_dtype

SENTENCES = st.lists(st.lists(st.integers(0, 2**16 - 1), max_size=8), max_size=12)
DTYPES = st.sampled_from([np.uint16, np.int32])


def packed(sentences, dtype=np.uint16):
    return TokenIds.of_lengths(
        np.array([*itertools.chain(*sentences)], dtype), [len(sentence) for sentence in sentences]
    )


def listed(ids):
    return [ids[number].tolist() for number in range(len(ids))]


@given(SENTENCES, DTYPES)
def test_packing_loses_nothing(sentences, dtype):
    ids = packed(sentences, dtype)
    assert listed(ids) == [sentence.tolist() for sentence in ids] == sentences
    assert ids.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert ids.flat.dtype == dtype


@pytest.mark.parametrize("lengths", [[], [2], [2, 2], [4]])
def test_lengths_that_do_not_add_up_to_the_ids_are_refused(lengths):
    message = (
        rf"^`lengths` must add up to the 3 ids of `flat`\. Received: a sum of {sum(lengths)}\.$"
    )
    with pytest.raises(ValueError, match=message):
        TokenIds.of_lengths(np.array([5, 6, 7]), lengths)


@given(st.lists(st.tuples(SENTENCES, DTYPES), min_size=1, max_size=4))
def test_joined_parts_are_joined_lists(parts):
    joined = TokenIds.concatenate(packed(*part) for part in parts)
    assert listed(joined) == [*itertools.chain(*(sentences for sentences, _ in parts))]
    assert joined.flat.dtype == max(
        (dtype for _, dtype in parts), key=lambda dtype: np.dtype(dtype).itemsize
    )


@given(SENTENCES, DTYPES, st.data())
def test_kept_sentences_are_those_of_the_list(sentences, dtype, data):
    keep = data.draw(st.lists(st.booleans(), min_size=len(sentences), max_size=len(sentences)))
    kept = packed(sentences, dtype).where(np.array(keep, bool))
    assert listed(kept) == [*itertools.compress(sentences, keep)]
    assert kept.flat.dtype == dtype


@given(st.integers(1, 2**31))
def test_the_dtype_holds_every_id(vocabulary_size):
    dtype = smallest_dtype(vocabulary_size)
    assert np.iinfo(dtype).max >= vocabulary_size - 1
    assert dtype.itemsize == (2 if vocabulary_size <= 65536 else 4)


def test_65536_ids_fit_two_bytes_and_one_more_does_not():
    assert (smallest_dtype(65536), smallest_dtype(65537)) == (np.uint16, np.int32)
    assert np.array([65535, 65536]).astype(np.uint16).tolist() == [65535, 0]


@given(st.lists(SENTENCES.map(lambda sentences: [[5], *sentences]), min_size=1, max_size=3), DTYPES)
def test_memory_begins_where_tensorflow_needs_not_copy_it(parts, dtype):
    joined = TokenIds.concatenate(packed(part, dtype) for part in parts)
    for ids in (joined, joined.where(joined.lengths > 0)):
        assert ids.flat.ctypes.data % ALIGNMENT == ids.starts.ctypes.data % ALIGNMENT == 0
