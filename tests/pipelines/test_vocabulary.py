"""A vocabulary does what sentencepiece does, inside a graph as outside, and is saved whole; there
is one for both languages, or one for each, which is learned from the text of its side.
"""

import collections
import hashlib
import itertools
import re
import unicodedata
from unittest import mock

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from token_lists import ENGLISH, GERMAN, listed

from pipelines import vocabularies
from pipelines.batches.texts import tokenize_pairs
from pipelines.corpora import ParallelText
from pipelines.special_ids import BOS, EOS, PAD, UNK
from pipelines.vocabularies import SeparateVocabularies, vocabulary
from pipelines.vocabularies.vocabulary import BYTES, SPACE, Vocabulary, _train, learn

LINES = [line for pair in zip(ENGLISH, GERMAN, strict=True) for line in pair]
SIZE = 310
UNUSUAL = (
    "Größe, Überfluß|🙂🏳️‍🌈|漢字 かな 한글|a\x00b\x01\x7f|tab\tnew\nline|e\u0301 ﬁ ①|▁|\ufeff\u200b|"
    "|<s> </s> <unk> <pad> <0x41>|\ud7ff a\x00b \u2028|.<2de> a<2de>\tb  \ufffd"
)
# Of ordinary text.
LETTERS = st.characters(max_codepoint=0x1FFFF, categories=["L", "Nd", "So", "P", "Zs"])


@pytest.fixture(scope="module")
def learned():
    return learn(LINES, SIZE)


def one_space_each(text):
    """The text that the way there and back gives; SentencePiece writes a space as "\u2581"."""
    return re.sub(" +", " ", text.replace("\u2581", " ")).strip(" ")


def there_and_back(learned, text):
    return learned.detokenize(learned.tokenize([text])).numpy()[0].decode()


def test_a_vocabulary_has_the_given_size_and_the_special_pieces_first(learned):
    processor = sentencepiece.SentencePieceProcessor(model_proto=learned.model)
    assert learned.size == processor.vocab_size() == len(learned.pieces) == SIZE
    special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    assert special == (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(BYTES))]
    assert learned.pieces[: 4 + BYTES] == pieces
    assert [processor.piece_to_id(piece) for piece in learned.pieces] == list(range(SIZE))
    # Special ids leave no text.
    ids = processor.encode("the house")
    assert learned.detokenize([[BOS, *ids, EOS, PAD, PAD]]).numpy().tolist() == [b"the house"]


def test_the_fingerprint_follows_from_the_text_and_the_tags(learned):
    assert learn(LINES, SIZE, ()).fingerprint == learned.fingerprint
    assert learn([*LINES, "sea and sky"], SIZE).fingerprint != learned.fingerprint
    assert learn(LINES, SIZE, TAGS).fingerprint != learned.fingerprint
    # The manifests of prepared records hold it.
    assert learned.fingerprint == hashlib.sha256(learned.model).hexdigest()[:16]


@pytest.fixture(scope="module", params=["bpe", "unigram", "word_piece"])
def any_kind(request):
    return learn(TAGGED, SIZE, TAGS, request.param)


def lists_of(texts):
    return st.lists(texts, min_size=1, max_size=8)


@settings(max_examples=30)
@given(lists_of(st.text(max_size=30)), lists_of(st.text(LETTERS, max_size=20)))
@example(UNUSUAL.split("|"), ["Größe?  漢字 かな 🙂"])
def test_the_graph_gives_the_ids_and_the_text_that_sentencepiece_gives(any_kind, texts, ordinary):
    """And ordinary text survives the way there and back, but for runs of spaces."""
    ids = any_kind.tokenize([*texts, *ordinary])
    for text, row in zip([*texts, *ordinary], ids.to_list(), strict=True):
        assert row == [*any_kind.processor.encode(text), EOS]
        assert not {PAD, UNK, BOS, EOS} & set(row[:-1])
    back = [text.decode() for text in any_kind.detokenize(ids).numpy()]
    assert back == [any_kind.processor.decode(row) for row in ids.to_list()]
    assert back[len(texts) :] == list(map(one_space_each, ordinary))


def test_every_character_survives(any_kind):
    """So do those that NFKC would change or join to the one before. The vocabulary is of English
    and German: most it spells in bytes.
    """
    visible = (chr(number) for number in range(0x20000))
    characters = [char for char in visible if unicodedata.category(char)[0] in "LMNPSZ"]
    assert len(characters) > 70_000
    texts = [f"a{character}b" for character in [*characters, "\t"]]
    back = any_kind.detokenize(any_kind.tokenize(texts)).numpy()
    assert [text.decode() for text in back] == [*map(one_space_each, texts)]


def test_a_unigram_vocabulary_is_another_than_byte_pairs_and_has_the_same_special_pieces():
    byte_pairs, unigram = (learn(LINES, 300, model_type=model) for model in ("bpe", "unigram"))
    assert byte_pairs.pieces[: 4 + BYTES] == unigram.pieces[: 4 + BYTES]
    assert byte_pairs.pieces != unigram.pieces


def test_a_failing_write_leaves_the_old_file(learned, tmp_path, monkeypatch):
    path = tmp_path / "vocabulary.model"
    path.write_bytes(b"old")
    full = mock.Mock(side_effect=OSError("disk full"))
    monkeypatch.setattr("pipelines.whole_files._flush", full)
    with pytest.raises(OSError, match="disk full"):
        learned.save(path)
    assert path.read_bytes() == b"old"


def test_a_damaged_file_is_refused_by_name(learned, tmp_path):
    path = tmp_path / "vocabulary.model"
    whole = learned.model
    for content in (b"", b"no model", whole[:1000], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"vocabulary\.model is not a SentencePiece model, or"):
            Vocabulary.load(path)


def test_a_model_with_other_special_ids_is_refused(learned, tmp_path):
    """Such as SentencePiece gives by default: our end of a sentence would be one of its pieces."""
    path = tmp_path / "other.model"
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES), model_writer=file, vocab_size=40, minloglevel=2
        )
    message = r"other\.model must have the ids <pad> 0, .*Received: -1, 0, 1, 2\. Train it with"
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(path)


@pytest.mark.parametrize("size", [0, 260])
def test_a_size_without_room_for_text_is_refused_in_one_line_with_the_least(size):
    with pytest.raises(ValueError, match=rf"^`vocabulary_size`.*at least 261: .*Received: {size}"):
        learn(LINES, size)
    # Tags take room.
    message = r"at least 264: 4 special pieces, 256 bytes, 3 tags, 1 of text\. Received: 263\."
    with pytest.raises(ValueError, match=message):
        learn(LINES, 263, TAGS)


@pytest.mark.parametrize("text", [[], [""], ["  "]])
def test_text_without_characters_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=rf"^no vocabulary could be learned from the {len(text)} "):
        learn(text, 300)


# First letters and numbers of letters; 700 pieces have no room for all letters of the last.
ALPHABETS_BY_START = {0x61: 26, 0x0620: 200, 0x4E00: 2000}


def made_up_lines(count, start):
    """Lines of words that repeat, some of them often; few letters are frequent."""
    letters = ALPHABETS_BY_START[start]
    rng = np.random.default_rng(count + start)
    words = [
        "".join(chr(start + int(letters * share**4)) for share in rng.random(4))
        for _ in range(count)
    ]
    return [" ".join(words[int(count * share**2)] for share in rng.random(8)) for _ in range(count)]


@pytest.mark.parametrize(
    ("pairs", "model_type"),
    [
        *itertools.product([1, 10, 1000], ["bpe", "unigram"]),
        *itertools.product([1, 10], ["word_piece"]),
    ],
)
@pytest.mark.parametrize("start", ALPHABETS_BY_START)
def test_a_text_of_any_alphabet_gives_as_many_pieces_as_it_holds(pairs, start, model_type, caplog):
    caplog.set_level("INFO", "pipelines")
    lines = made_up_lines(2 * pairs, start)
    tagged = [f"<2de> {line}" for line in lines]
    for size in (262, 700, 4000):
        caplog.clear()
        learned = learn(tagged, size, ("<2de>",), model_type)
        assert learned.size <= size
        message = f"{learned.size:,} pieces, all that this text holds"
        assert (message in caplog.messages) == (learned.size < size)
        assert [there_and_back(learned, line) for line in lines[:2]] == lines[:2]
        assert not np.isin(UNK, learned.tokenize(tagged[:200]).flat_values)


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("tags", [(), ("<2de>",)])
def test_a_size_that_fits_gives_the_model_that_every_version_learned(model_type, tags, caplog):
    """SentencePiece's own model with its hard limit, byte for byte, so that old runs go on."""
    caplog.set_level("INFO", "pipelines")
    expected = _train(LINES, 290, list(tags), model_type)
    assert learn(LINES, 290, tags, model_type).model == expected
    assert caplog.messages == []
    # The control: with the soft limit it is another model.
    assert _train(LINES, 290, list(tags), model_type, hard_vocab_limit=False) != expected


def test_the_rarest_characters_are_left_to_bytes_and_frequent_words_are_pieces(caplog):
    caplog.set_level("INFO", "pipelines")
    lines = made_up_lines(2000, 0x4E00)
    learned = learn(lines, 700)
    counts = collections.Counter("".join(lines).replace(" ", ""))
    characters = {piece for piece in learned.pieces if len(piece) == 1} - {SPACE}
    left = counts.keys() - characters
    assert 700 < len(counts) == len(characters) + len(left)
    assert min(map(counts.get, characters)) >= max(map(counts.get, left))
    assert learned.size == 700
    assert sum(len(piece) > 1 for piece in learned.pieces[4 + BYTES :]) > 200
    [message] = caplog.messages
    assert "no room for all characters as pieces: the " in message
    assert message.endswith(f" rarest of {len(counts):,} are left to bytes")


def test_lines_that_sentencepiece_passes_over_are_learned_from_if_there_are_no_others():
    learned = learn(["ab \u2585 ab"], 300)
    assert "ab" in learned.pieces
    assert there_and_back(learned, "\u2585 ab") == "\u2585 ab"
    # Long ones too: of the short line alone there are not so many pieces.
    assert learn(["a b", "zebra " * 2000], 270).pieces[-1] in "zebra"
    assert learn(["a b"], 270).size < 270


TAGS = ("<2de>", "<2fr>", "<news_wire-2>")
TAGGED = [f"{tag} {line}" for tag in TAGS for line in LINES]


@pytest.fixture(scope="module")
def tagged():
    return learn(TAGGED, SIZE, TAGS)


PARTS = st.sampled_from([*TAGS, " ", "<", ">", "2de", "<2"]) | st.text(max_size=5)


@settings(max_examples=30)
@given(lists_of(st.lists(PARTS, max_size=8).map("".join)))
@example(["<2de> the house", "the house<2de><2fr>is big", "<<2de>>"])
def test_a_tag_is_one_piece_wherever_it_stands_inside_a_graph_as_outside(any_kind, texts):
    ids = any_kind.tokenize(texts).to_list()
    assert ids == [[*any_kind.processor.encode(text), EOS] for text in texts]
    for tag, (text, row) in itertools.product(TAGS, zip(texts, ids, strict=True)):
        assert row.count(any_kind.pieces.index(tag)) == text.count(tag)


def test_a_tag_before_the_source_is_one_piece_and_leaves_the_rest_as_it_was(tagged):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tagged.model)
    for line in LINES:
        expected = ["\u2581", "<2de>", *processor.encode(line, out_type=str)]
        assert processor.encode(f"<2de> {line}", out_type=str) == expected
        assert there_and_back(tagged, f"<2de> {line}") == f"<2de> {line}"


def test_nothing_of_a_tag_leaks_into_learned_pieces(tagged):
    assert tagged.size == SIZE
    assert set(TAGS) < set(tagged.pieces)
    learned = tagged.pieces[4 + len(TAGS) + BYTES :]
    assert not [piece for piece in learned if set("<>2_-w") & set(piece)]


@pytest.mark.parametrize(
    "tags", [("<s>",), ("<2de>", "<pad>"), ("<unk>",), ("<0x41>",), ("<2de>", "<2fr>", "<2de>")]
)
def test_a_tag_that_is_a_piece_already_is_refused(tags):
    with pytest.raises(ValueError, match=r"^`tags` must differ .*Received: <[\w>]+\. ") as caught:
        learn(LINES, SIZE, tags)
    assert tags[-1] in str(caught.value)


class Reader(tf.Module):
    """Tokenizers as a SavedModel has them."""

    def __init__(self, *tokenizers):
        super().__init__()
        self.tokenizers = tokenizers
        text = tf.TensorSpec([None], tf.string)
        self.read = tf.function(
            lambda text: [tokenizer.tokenize(text).flat_values for tokenizer in tokenizers], [text]
        )


def reloaded(path, *tokenizers):
    """The ids that tokenizers of a SavedModel give for the lines."""
    tf.saved_model.save(Reader(*tokenizers), str(path))
    return [ids.numpy().tolist() for ids in tf.saved_model.load(str(path)).read(LINES)]


def test_two_vocabularies_of_a_saved_model_stay_two(learned, tmp_path):
    both = (learned, learn(LINES, 300))
    expected = [each.tokenize(LINES).flat_values.numpy().tolist() for each in both]
    assert reloaded(tmp_path / "ours", *(each.tokenizer for each in both)) == expected
    # The control: by TensorFlow Text's own name both are one of them.
    theirs = (tensorflow_text.SentencepieceTokenizer(each.model, add_eos=True) for each in both)
    first, second = reloaded(tmp_path / "theirs", *theirs)
    assert first == second
    assert first in expected


def test_a_vocabulary_outlives_a_new_seed(learned, tmp_path):
    expected = learned.tokenize(LINES).to_list()
    batches = tf.data.Dataset.from_tensors(LINES).map(learned.tokenize)
    tf.saved_model.save(Reader(learned.tokenizer), str(tmp_path))
    saved = tf.saved_model.load(str(tmp_path))
    theirs = tensorflow_text.SentencepieceTokenizer(learned.model, add_eos=True)
    assert theirs.tokenize(LINES).to_list() == expected

    tf.random.set_seed(1)

    assert learned.tokenize(LINES).to_list() == expected
    assert [ids.to_list() for ids in batches] == [expected]
    assert saved.read(LINES)[0].numpy().tolist() == list(itertools.chain(*expected))
    assert learned.detokenize(learned.tokenize(LINES)).numpy()[0].decode() == LINES[0]
    # The control: TensorFlow Text's own is broken.
    with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
        theirs.tokenize(LINES)


SIDE_SIZE = 290
JOINT = ["vocabulary.model"]
SEPARATE = ["vocabulary.source.model", "vocabulary.target.model"]


@pytest.fixture(scope="module")
def joint():
    return vocabularies.learn(ENGLISH, GERMAN, "joint", SIDE_SIZE)


@pytest.fixture(scope="module")
def separate():
    return vocabularies.learn(ENGLISH, GERMAN, "separate", SIDE_SIZE)


def test_a_joint_vocabulary_is_learned_from_all_text_and_is_both_sides(joint):
    assert joint.model == vocabulary.learn(ENGLISH + GERMAN, SIDE_SIZE).model
    assert joint.source is joint.target is joint
    assert vocabularies.pieces_by_side(joint) == {"source": joint.pieces, "target": joint.pieces}


def test_separate_vocabularies_are_each_learned_from_their_side(separate):
    sides = [vocabulary.learn(lines, SIDE_SIZE) for lines in (ENGLISH, GERMAN)]
    assert [separate.source.model, separate.target.model] == [side.model for side in sides]
    assert separate.size == SIDE_SIZE
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
    pair = vocabularies.learn(["a b a b"], GERMAN, "separate", SIDE_SIZE)
    assert pair.source.pieces == vocabulary.learn(["a b a b"], SIDE_SIZE).pieces
    assert pair.target.model == vocabulary.learn(GERMAN, pair.source.size).model
    assert 261 < pair.size < SIDE_SIZE
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
