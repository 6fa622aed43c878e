"""One vocabulary for both languages, or one for each, which is learned from its side's text. A
reader takes a side, and gets its vocabulary.
"""

import re

import pytest
import tensorflow as tf
from token_lists import ENGLISH, GERMAN, listed

from pipelines import vocabularies
from pipelines.batches.texts import tokenize_pairs
from pipelines.corpora import ParallelText
from pipelines.vocabularies import SeparateVocabularies, vocabulary
from pipelines.vocabularies.vocabulary import Vocabulary

SIZE = 290
JOINT = ["vocabulary.model"]
SEPARATE = ["vocabulary.source.model", "vocabulary.target.model"]


@pytest.fixture(scope="module")
def joint():
    return vocabularies.learn(ENGLISH, GERMAN, "joint", SIZE)


@pytest.fixture(scope="module")
def separate():
    return vocabularies.learn(ENGLISH, GERMAN, "separate", SIZE)


def test_a_joint_vocabulary_is_learned_from_all_text_and_is_both_sides(joint):
    assert joint.model == vocabulary.learn(ENGLISH + GERMAN, SIZE).model
    assert joint.source is joint.target is joint
    assert vocabularies.pieces_by_side(joint) == {"source": joint.pieces, "target": joint.pieces}


def test_separate_vocabularies_are_each_learned_from_their_side(separate):
    sides = [vocabulary.learn(lines, SIZE) for lines in (ENGLISH, GERMAN)]
    assert [separate.source.model, separate.target.model] == [side.model for side in sides]
    assert separate.size == SIZE
    assert separate.fingerprint == "-".join(side.fingerprint for side in sides)
    assert sides[0].fingerprint != sides[1].fingerprint


def test_model_and_tags_hold_for_both_sides():
    pair = vocabularies.learn(ENGLISH, GERMAN, "separate", 285, ["<2de>"], "unigram")
    for side in (pair.source, pair.target):
        assert side.log_probabilities is not None
        assert "<2de>" in side.pieces


def test_a_pair_of_texts_is_tokenized_side_by_side(separate):
    pairs = tokenize_pairs(ParallelText(ENGLISH, GERMAN), separate)
    assert listed(pairs.sources) == separate.source.tokenize(ENGLISH).to_list()
    assert listed(pairs.targets) == separate.target.tokenize(GERMAN).to_list()
    # The control: by the other side's vocabulary the text is another.
    ids = tf.ragged.constant([pairs.sources[0].tolist()])
    assert separate.source.detokenize(ids).numpy()[0].decode() == ENGLISH[0]
    assert separate.target.detokenize(ids).numpy()[0].decode() != ENGLISH[0]


@pytest.mark.parametrize(("kind", "names"), [("joint", JOINT), ("separate", SEPARATE)])
def test_a_saved_vocabulary_is_loaded_and_replaces_the_other_kind(kind, names, request, tmp_path):
    assert not vocabularies.exist(tmp_path)
    opposite = {"joint": "separate", "separate": "joint"}
    vocabularies.save(request.getfixturevalue(opposite[kind]), tmp_path)
    saved = request.getfixturevalue(kind)
    vocabularies.save(saved, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert vocabularies.paths(saved.kind, tmp_path) == [tmp_path / name for name in names]
    assert vocabularies.exist(tmp_path)
    files = vocabularies.of_files([tmp_path / name for name in names])
    for loaded in (vocabularies.load(str(tmp_path)), files):
        assert (loaded.kind, loaded.fingerprint) == (kind, saved.fingerprint)


@pytest.mark.parametrize("lost", SEPARATE)
def test_a_lost_side_is_named(separate, tmp_path, lost):
    # An empty folder has none.
    with pytest.raises(FileNotFoundError, match=r"/vocabulary\.model"):
        vocabularies.load(tmp_path)
    vocabularies.save(separate, tmp_path)
    (tmp_path / lost).unlink()
    assert not vocabularies.exist(tmp_path)
    with pytest.raises(FileNotFoundError, match=re.escape(lost)):
        vocabularies.load(tmp_path)


def test_sides_of_other_sizes_are_refused(joint):
    message = r"the same number of pieces\. Received: 290 and 289\. Learn both with "
    with pytest.raises(ValueError, match=message):
        SeparateVocabularies(joint, vocabulary.learn(GERMAN, 289))


@pytest.mark.parametrize("number", [0, 3])
def test_files_of_no_vocabulary_are_refused(joint, tmp_path, number):
    joint.save(tmp_path / "one.model")
    with pytest.raises(ValueError, match=r"^a vocabulary is one file for both languages, or one "):
        vocabularies.of_files([tmp_path / "one.model"] * number)
    assert isinstance(vocabularies.of_files([tmp_path / "one.model"]), Vocabulary)


def test_the_smaller_of_two_texts_decides_the_size_of_both(caplog):
    caplog.set_level("INFO", "pipelines")
    pair = vocabularies.learn(["a b a b"], GERMAN, "separate", SIZE)
    assert pair.source.pieces == vocabulary.learn(["a b a b"], SIZE).pieces
    assert pair.target.model == vocabulary.learn(GERMAN, pair.source.size).model
    assert 261 < pair.size < SIZE
    assert f"{pair.size} pieces a language: a model needs as many of each" in caplog.messages


def test_a_piece_of_another_vocabulary_is_cut_as_the_text_that_it_stands_for():
    ours = vocabulary.learn(["haus auf dem berg", "hausberg bergauf"] * 9, 285)
    cut = vocabularies.parts_of(ours)
    for piece in ("▁hausauf", "▁ber", "aufberg", "g", "▁demhaus"):
        parts = [ours.pieces[number] for number in cut(piece)]
        assert "".join(parts).removeprefix("▁") == piece.removeprefix("▁")
        assert parts[0].startswith("▁") <= piece.startswith("▁") or parts[0][1:] not in ours.pieces
    # Bytes and special pieces are no text.
    assert [cut(piece) for piece in ("<0x41>", "<unk>", "</s>")] == [[], [], []]
    assert vocabularies.parts_by_side(ours).keys() == {"source", "target"}
