"""Learned word pieces: the longest from left to right, in the graph and without TensorFlow; of any
text, which comes back; tags stay whole. Who asks for their merges is refused: test_segmentation.py.
"""

import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines import vocabularies
from pipelines.special_ids import EOS, UNK
from pipelines.vocabularies.augmentation import AugmentedText
from pipelines.vocabularies.model_proto import whole_pieces
from pipelines.vocabularies.vocabulary import BYTES, SPACE, learn

TAG = "<2de>"
SYLLABLES = ["ba", "be", "bab", "eba", "abe", "é", "12", "..", "<", "-"]
drawn = np.random.default_rng(1)
LINES = [
    " ".join("".join(drawn.choice(SYLLABLES, drawn.integers(1, 5))) for _ in range(6))
    for _ in range(200)
]
SIZE = 4 + BYTES + 1 + 60
# A raw U+2581 is a space, and SentencePiece folds no run of spaces that has one.
TEXTS = st.text(st.characters(exclude_characters=SPACE, exclude_categories=["Cs"]), max_size=30)


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES, SIZE, [TAG], "word_piece")


def longest_first(word, pieces):
    """The oracle: the longest piece at the beginning, and so on."""
    found = []
    while word:
        found.append(next(word[:end] for end in range(len(word), 0, -1) if word[:end] in pieces))
        word = word[len(found[-1]) :]
    return found


def cut(vocabulary, line):
    return [vocabulary.pieces[one] for one in vocabulary.tokenize([line]).to_list()[0][:-1]]


def expected_of(line, vocabulary):
    pieces = {*vocabulary.pieces[5 + BYTES :]}
    return [one for word in line.split() for one in longest_first(SPACE + word, pieces)]


def test_the_longest_pieces_are_cut_from_left_to_right(vocabulary):
    assert vocabulary.size == SIZE
    lengths = {len(one) for line in LINES for one in cut(vocabulary, line)}
    assert max(lengths) > 4
    assert all(cut(vocabulary, line) == expected_of(line, vocabulary) for line in LINES)
    # The control: byte pairs are merged in the order in which they were learned.
    pairs = learn(LINES, SIZE, [TAG])
    assert not all(cut(pairs, line) == expected_of(line, pairs) for line in LINES)


def test_tensorflow_texts_own_tokenizer_cuts_the_same_pieces(vocabulary):
    engine = tensorflow_text.FastWordpieceTokenizer(
        vocabulary.pieces,
        suffix_indicator="",
        unknown_token="<unk>",
        no_pretokenization=True,
        token_out_type=tf.int32,
    )
    words = tf.strings.split([SPACE + line.replace(" ", f" {SPACE}") for line in LINES])
    theirs = engine.tokenize(words).merge_dims(1, 2).to_list()
    assert vocabulary.tokenize(LINES).to_list() == [[*ids, EOS] for ids in theirs]


@settings(deadline=None)
@given(TEXTS)
@example("Größe 🙂 漢字 a\x00b \u2028 .<2de> ba<2de>\tbe  \ufffd")
def test_any_text_comes_back_and_the_graph_cuts_as_sentencepiece_does(vocabulary, text):
    ids = vocabulary.tokenize([text])
    assert ids.to_list()[0] == [*vocabulary.processor.encode(text), EOS]
    assert UNK not in ids.to_list()[0]
    expected = re.sub(" +", " ", text).strip(" ")
    assert vocabulary.detokenize(ids).numpy()[0].decode() == expected


def test_a_tag_is_one_piece_behind_a_piece_that_could_reach_into_it(vocabulary):
    assert cut(vocabulary, f"ba..<{TAG}ba")[-2:] == [TAG, "ba"]
    assert "<" in vocabulary.pieces
    # The control: what does not know the tag learns such pieces.
    without = learn(LINES, SIZE, (), "word_piece")
    assert any(piece.endswith("<") for piece in without.pieces if len(piece) > 1)


def test_pieces_are_of_letters_or_of_digits_or_of_others(vocabulary):
    assert any(piece.removeprefix(SPACE) == "12" for piece in vocabulary.pieces)
    kinds = (r"[^\W\d]+", r"\d+", r"[^\w]+")
    for piece in vocabulary.pieces[5 + BYTES :]:
        rest = piece.removeprefix(SPACE)
        assert not rest or any(re.fullmatch(kind, rest) for kind in kinds), piece


def test_learned_pieces_may_be_typed_otherwise_and_tags_not(vocabulary):
    assert whole_pieces(vocabulary.model) == [TAG]
    typed = AugmentedText(vocabulary, {"case": 1.0}, seed=3, longest=99)
    changed = typed.changed(tf.constant([f"{TAG} babe"] * 9), typed.keys(tf.range(9), tf.range(9)))
    assert {one.decode()[:5] for one in changed.numpy()} == {TAG}
    assert any(b"babe" not in one for one in changed.numpy())


def test_more_characters_than_room_are_left_to_bytes_and_separate_ones_are_of_one_size():
    lines = [f"{chr(0x4E00 + number)}ab" for number in range(99)]
    few = learn([*lines, *["ab ba"] * 99], 4 + BYTES + 20, (), "word_piece")
    assert few.size <= 4 + BYTES + 20
    assert "ab" in few.pieces
    assert few.detokenize(few.tokenize(lines)).numpy()[5].decode() == lines[5]
    both = vocabularies.learn(LINES, ["x yz"] * 9, "separate", SIZE, (), "word_piece")
    assert both.source.size == both.target.size
