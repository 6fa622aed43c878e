"""Word pieces: the same ids as transformers' tokenizer, a mask in the text, and the way back."""

import json

import pytest
import tensorflow as tf

from keras_transformer.imports import bert_vocabulary
from pipelines import vocabularies
from pipelines.word_pieces import SPECIAL, WordPieces

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


def test_ids_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers", reason="install the extra [oracles]")
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    ours = WordPieces(PIECES).tokenize(tf.constant(TEXTS)).to_list()
    for lower_case in (True, False):
        theirs = transformers.BertTokenizer(
            vocab=str(tmp_path / "vocab.txt"), do_lower_case=lower_case
        )
        expected = [ids[1:] for ids in theirs(TEXTS)["input_ids"]]
        found = WordPieces(PIECES, lower_case).tokenize(tf.constant(TEXTS)).to_list()
        assert found == expected
    # The control: a cased vocabulary cuts other pieces.
    assert found != ours


def test_words_come_back():
    pieces = WordPieces(PIECES)
    ids = pieces.tokenize(tf.constant(["the stopped cafe", "[MASK] x"]))
    assert pieces.detokenize(ids[:, :-1]).numpy().tolist() == [b"the stopped cafe", b"[MASK] x"]


def test_it_is_a_vocabulary_of_a_folder(tmp_path):
    pieces = WordPieces(PIECES, lower_case=False)
    vocabularies.save(pieces, tmp_path)
    assert vocabularies.exist(tmp_path)
    again = vocabularies.load(tmp_path)
    assert (again.fingerprint, again.pieces, again.lower_case) == (
        pieces.fingerprint,
        PIECES,
        False,
    )
    assert again.fingerprint != WordPieces(PIECES).fingerprint
    (tmp_path / "vocabulary.json").write_text("{}")
    with pytest.raises(ValueError, match=r"is no vocabulary of word pieces \(.*\)\. Import the"):
        vocabularies.load(tmp_path)


def test_a_folder_of_transformers_is_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no vocabulary: neither vocab\.txt nor"):
        bert_vocabulary.load(tmp_path)
    model = {"type": "WordPiece", "vocab": {piece: n for n, piece in enumerate(PIECES)}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": model, "normalizer": {"lowercase": False}}))
    found = bert_vocabulary.load(tmp_path)
    assert (found.pieces, found.lower_case) == (PIECES, False)
    path.write_text(json.dumps({"model": {"type": "BPE"}}))
    with pytest.raises(ValueError, match=r"must be of the type WordPiece\. Received: BPE"):
        bert_vocabulary.load(tmp_path)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer\.json is damaged \("):
        bert_vocabulary.load(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES[1:]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"must have \[PAD\], .* one without \[PAD\]"):
        bert_vocabulary.load(tmp_path)
