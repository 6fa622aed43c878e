"""Word pieces give the ids of transformers' tokenizer, masks in the text among them, and come back
as text; learned ones are the longest from left to right.
"""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.imports import bert_text
from keras_transformer.imports.folder_files import SettingsFiles
from pipelines import vocabularies
from pipelines.vocabularies.augmentation import AugmentedText
from pipelines.vocabularies.model_proto import whole_pieces
from pipelines.vocabularies.vocabulary import BYTES, SPACE, learn
from pipelines.vocabularies.word_pieces import SPECIAL, WordPieces

WORDS = ("the", "cafe", "straße", "don", "t", "stop", "##ped", "##s", "1", "##0", "日", "x", "##y")
PIECES = [*SPECIAL, *WORDS, *"%,.!?'()-²½😀", "ﬁ"]
TEXTS = [
    "The CAFÉ don't stop!",
    "",
    "  stopped\tstops\n10%  ",
    "the [MASK], the[MASK][MASK] xy.",
    "日日 x² ½ ﬁ 😀 unknown",
    "Straße x\x00y \ufffd z\u200bx e\u0301",
    "y" * 120,
]


def theirs(pieces, texts, **settings):
    """The ids that transformers gives, without the first."""
    transformers = pytest.importorskip("transformers", reason="install the extra [oracles]")
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = transformers.BertTokenizer(vocab=numbers, **settings)
    return [ids[1:] for ids in tokenizer(texts)["input_ids"]]


def tokenized(pieces, texts):
    return pieces.tokenize(tf.constant(texts)).to_list()


def assert_as_theirs(pieces, texts):
    """In lower case, and as it stands."""
    for lower_case in (True, False):
        expected = theirs(pieces, texts, do_lower_case=lower_case)
        assert tokenized(WordPieces(pieces, lower_case), texts) == expected


def test_ids_are_those_of_transformers():
    assert_as_theirs(PIECES, TEXTS)
    # The control: a cased vocabulary cuts other pieces.
    assert tokenized(WordPieces(PIECES), TEXTS) != tokenized(WordPieces(PIECES, False), TEXTS)


OF_ANY_MODEL = {"tokenizer_class": "PreTrainedTokenizerFast"}
ACCENTED = [*SPECIAL, "cafe", "café", "Cafe", "Café", "a"]


@pytest.mark.parametrize("strip_accents", [None, True, False])
@pytest.mark.parametrize("lower_case", [True, False])
def test_accents_are_stripped_where_the_settings_say_so(tmp_path, lower_case, strip_accents):
    """As in transformers: without a setting of its own, where text is put into lower case."""
    texts = ["CAFÉ Café cafe", "cafe\u0301 İ ŞIK"]
    settings = {"do_lower_case": lower_case, "strip_accents": strip_accents}
    (tmp_path / "vocab.txt").write_text("\n".join(ACCENTED), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    ours = bert_text.load_vocabulary(SettingsFiles(tmp_path))
    assert tokenized(ours, texts) == theirs(ACCENTED, texts, **settings)


# Whether text is put into lower case, and whether accents are stripped.
CASES = [(True, True), (True, False), (False, False)]


@pytest.mark.parametrize("settings", CASES)
def test_word_pieces_are_saved_and_loaded(tmp_path, settings):
    saved = WordPieces(ACCENTED, *settings)
    vocabularies.save(saved, tmp_path)
    assert vocabularies.exist(tmp_path)
    loaded = vocabularies.load(tmp_path)
    assert (loaded.pieces, loaded.lower_case, loaded.strip_accents) == (ACCENTED, *settings)
    assert loaded.fingerprint == saved.fingerprint
    assert len({WordPieces(ACCENTED, *case).fingerprint for case in CASES}) == len(CASES)


def test_a_file_without_the_setting_of_accents_is_read_and_one_without_pieces_refused(tmp_path):
    """Versions that had no such setting, and their fingerprint."""
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps({"lower_case": True, "pieces": ACCENTED}))
    old = vocabularies.load(tmp_path)
    assert tokenized(old, ["CAFÉ"]) == [[5, 3]]
    assert old.fingerprint == WordPieces(ACCENTED, True, True).fingerprint == "df78302d81bb43b9"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"vocabulary\.json lacks pieces\. Import the"):
        vocabularies.load(tmp_path)


def test_long_words_are_those_of_transformers():
    letters = "aéяก😀"
    pieces = [*SPECIAL, "b", "²", ".", *letters, *(f"##{letter}" for letter in letters)]
    random = np.random.default_rng(1)
    texts = [
        " ".join("".join(random.choice([*letters], length)) for length in (99, 100, 101, 120))
        for _ in range(4)
    ]
    # 200 characters, of which accents are half.
    texts += ["e\u0301" * 100, "b" + "ก" * 99 + "²", f"{'ก' * 60}日{'ก' * 60}b"]
    # Thai has three bytes a letter, and no spaces.
    texts += [f"b {'ก' * 100}.{'ก' * 101}. b {letter * 500}" for letter in letters]
    assert_as_theirs(pieces, texts)


def test_ids_become_words_again():
    pieces = WordPieces(PIECES)
    ids = pieces.tokenize(tf.constant(["the stopped cafe", "[MASK] x"]))
    assert pieces.detokenize(ids[:, :-1]).numpy().tolist() == [b"the stopped cafe", b"[MASK] x"]


@pytest.mark.parametrize(
    ("normalizer", "settings", "expected"),
    [
        ({"lowercase": False, "strip_accents": True}, OF_ANY_MODEL, (False, True)),
        ({"lowercase": False}, {**OF_ANY_MODEL, "do_lower_case": True}, (False, False)),
        ({"lowercase": False}, {}, (True, True)),
        ({"lowercase": False}, {"tokenizer_class": "BertTokenizer"}, (True, True)),
        ({}, {"do_lower_case": False, "strip_accents": True}, (False, True)),
        ({"strip_accents": False}, {"do_lower_case": True}, (True, True)),
        ({"handle_chinese_chars": False}, {}, (True, True)),
    ],
)
@pytest.mark.parametrize("with_text", [True, False])
def test_settings_are_read_as_in_transformers(tmp_path, normalizer, settings, expected, with_text):
    """With vocab.txt beside it or without."""
    model = {"type": "WordPiece", "vocab": {piece: n for n, piece in enumerate(PIECES)}}
    tokenizer = {"model": model, "normalizer": normalizer}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    if with_text:
        (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    loaded = bert_text.load_vocabulary(SettingsFiles(tmp_path))
    assert (loaded.pieces, loaded.lower_case, loaded.strip_accents) == (PIECES, *expected)


def test_chinese_that_is_not_cut_into_characters_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    words = r"(tokenize|handle)_chinese_chars` of .*json must be true\. Received: false"
    tokenizer = json.dumps({"normalizer": {"handle_chinese_chars": False}})
    for document in ({"tokenize_chinese_chars": False}, OF_ANY_MODEL):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(document))
        with pytest.raises(ValueError, match=words):
            bert_text.load_vocabulary(SettingsFiles(tmp_path))
        (tmp_path / "tokenizer.json").write_text(tokenizer)


# Learned word pieces: the longest from left to right; tags stay whole. test_vocabulary.py has their
# text back, in the graph as outside; test_segmentation.py refuses BPE-dropout with them.
TAG = "<2de>"
SYLLABLES = ["ba", "be", "bab", "eba", "abe", "é", "12", "..", "<", "-"]
RANDOM = np.random.default_rng(1)
LINES = [
    " ".join("".join(RANDOM.choice(SYLLABLES, RANDOM.integers(1, 5))) for _ in range(6))
    for _ in range(200)
]
SIZE = 4 + BYTES + 1 + 60


@pytest.fixture(scope="module")
def vocabulary():
    return learn(LINES, SIZE, [TAG], "word_piece")


def longest_first(word, pieces):
    """The oracle: the longest piece that begins the word, then that of the rest."""
    parts = []
    while word:
        parts.append(next(word[:end] for end in range(len(word), 0, -1) if word[:end] in pieces))
        word = word[len(parts[-1]) :]
    return parts


def cut(vocabulary, line):
    return [vocabulary.pieces[number] for number in vocabulary.tokenize([line]).to_list()[0][:-1]]


def expected_of(line, vocabulary):
    pieces = {*vocabulary.pieces[5 + BYTES :]}
    return [piece for word in line.split() for piece in longest_first(SPACE + word, pieces)]


def test_the_longest_pieces_are_cut_from_left_to_right(vocabulary):
    assert vocabulary.size == SIZE
    assert max({len(piece) for line in LINES for piece in cut(vocabulary, line)}) > 4
    assert all(cut(vocabulary, line) == expected_of(line, vocabulary) for line in LINES)
    # The control: byte pairs are merged in the order in which they were learned.
    pairs = learn(LINES, SIZE, [TAG])
    assert not all(cut(pairs, line) == expected_of(line, pairs) for line in LINES)


def test_a_tag_is_one_piece_behind_a_piece_that_could_reach_into_it(vocabulary):
    assert cut(vocabulary, f"ba..<{TAG}ba")[-2:] == [TAG, "ba"]
    assert "<" in vocabulary.pieces
    # The control: without the tag such pieces are learned.
    without = learn(LINES, SIZE, (), "word_piece")
    assert any(piece.endswith("<") for piece in without.pieces if len(piece) > 1)


def test_pieces_are_of_letters_or_of_digits_or_of_others(vocabulary):
    assert any(piece.removeprefix(SPACE) == "12" for piece in vocabulary.pieces)
    kinds = (r"[^\W\d]+", r"\d+", r"[^\w]+")
    for piece in vocabulary.pieces[5 + BYTES :]:
        rest = piece.removeprefix(SPACE)
        assert not rest or any(re.fullmatch(kind, rest) for kind in kinds), piece


def test_augmentation_changes_learned_pieces_but_no_tags(vocabulary):
    assert whole_pieces(vocabulary.model) == [TAG]
    typed = AugmentedText(vocabulary, {"case": 1.0}, seed=3, longest=99)
    changed = typed.changed(tf.constant([f"{TAG} babe"] * 9), typed.keys(tf.range(9), tf.range(9)))
    assert {text.decode()[:5] for text in changed.numpy()} == {TAG}
    assert any(b"babe" not in text for text in changed.numpy())


def test_characters_without_room_are_left_to_bytes_and_separate_sizes_are_equal():
    lines = [f"{chr(0x4E00 + number)}ab" for number in range(99)]
    few = learn([*lines, *["ab ba"] * 99], 4 + BYTES + 20, (), "word_piece")
    assert few.size <= 4 + BYTES + 20
    assert "ab" in few.pieces
    assert few.detokenize(few.tokenize(lines)).numpy()[5].decode() == lines[5]
    both = vocabularies.learn(LINES, ["x yz"] * 9, "separate", SIZE, (), "word_piece")
    assert both.source.size == both.target.size
