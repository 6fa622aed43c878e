"""T5s that `transformers` makes at random and saves: ours give the same logits and strings."""

import json
import shutil
import types

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from small_folders import change, learned
from theirs import random_of_theirs, torch, transformers

from keras_transformer.imports import hugging_face
from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.tasks import imported
from pipelines.special_ids import EOS

SIZES = {"d_model": 8, "d_kv": 3, "d_ff": 16, "num_layers": 2, "num_heads": 2, "dropout_rate": 0.0}
LINES = ["translate: the house is small", "summarize: a dog ran home, quickly", "a red cat"] * 8
SENTINELS = 5
# Settings of the config; whether the projection is a matrix of its own; what a version of
# transformers before 5 writes differently into config.json.
VERSIONS = {
    "1.0": ({}, False, {}),
    "1.1": (
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 1},
        True,
        {"tie_word_embeddings": False, "scale_decoder_outputs": None},
    ),
    "1.1, saved by transformers 5": (
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        True,
        {},
    ),
    "1.1, tied": ({"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, False, {}),
}


def write(folder, version):
    """A small T5 of `transformers`, and the folder that it was saved into."""
    settings, has_projection, changes = VERSIONS[version]
    model = learned(LINES, size=60, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (folder / "spiece.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    (folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": SENTINELS}))
    pieces = [processor.id_to_piece(number) for number in range(processor.vocab_size())]
    size = len(pieces) + SENTINELS + 3
    config = transformers.T5Config(vocab_size=size, **SIZES, **settings)
    kind = transformers.T5ForConditionalGeneration
    theirs = random_of_theirs(kind, config, seed=1, scale=0.3)
    if has_projection:
        theirs.lm_head.weight = torch.nn.Parameter(theirs.lm_head.weight.flip(0))
    theirs.save_pretrained(folder)
    tensors = theirs.state_dict()
    if has_projection:
        save = pytest.importorskip("safetensors.torch").save_file
        names = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
        tensors = {name: tensor.clone() for name, tensor in tensors.items() if name not in names}
        save(tensors, folder / "model.safetensors")
    change(folder, **changes)
    return types.SimpleNamespace(
        model=theirs, folder=folder, size=size, pieces=pieces, processor=processor
    )


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return write(tmp_path_factory.mktemp("t5"), "1.1")


@pytest.fixture(scope="module")
def module(t5):
    task, module = imported.module_of(PretrainedFolder(t5.folder))
    assert task == "translation"
    return module


def of_ours(ids, size):
    """The ids of T5 as ours: PAD and EOS are 0 and 3, UNK is 1, and what was 3 moves to the end."""
    moved = np.arange(size)
    moved[[0, 1, 2, 3]] = (0, 3, 1, size)
    return moved[ids]


@pytest.mark.parametrize("version", VERSIONS)
def test_logits_are_those_of_transformers(tmp_path, version):
    t5 = write(tmp_path, version)
    source = np.array([[5, 9, 4, 17, 3, 1], [11, 7, 2, 1, 0, 0]])
    target = np.array([[0, 6, 8, 3], [0, 4, 2, 19]])
    with torch.no_grad():
        expected = t5.model(
            input_ids=torch.tensor(source),
            attention_mask=torch.tensor(source != 0).long(),
            decoder_input_ids=torch.tensor(target),
        ).logits.numpy()
    model = hugging_face.load(t5.folder)
    inputs = of_ours(target, t5.size)
    inputs[:, 0] = 2
    logits = np.array(model((of_ours(source, t5.size), inputs)))
    order = of_ours(np.arange(t5.size), t5.size)
    np.testing.assert_allclose(logits[..., order], expected, rtol=1e-5, atol=1e-4)


@pytest.fixture(scope="module")
def tokenizer(t5):
    scores = [(piece, t5.processor.get_score(number)) for number, piece in enumerate(t5.pieces)]
    scores += [(f"<extra_id_{number}>", 0.0) for number in reversed(range(SENTINELS))]
    return transformers.T5Tokenizer(vocab=scores, extra_ids=SENTINELS)


def test_a_run_gives_the_strings_of_transformers(t5, tokenizer, module):
    texts = ["translate: the cat is small", "a  red dog <extra_id_0> ran <extra_id_3>", "home"]
    ids = [tokenizer(text)["input_ids"] for text in texts]
    source_ids = module.source_ids(tf.constant(texts)).to_list()
    assert source_ids == [of_ours(np.array(row), t5.size).tolist() for row in ids]
    for text, row in zip(texts, ids, strict=True):
        with torch.no_grad():
            theirs = t5.model.generate(
                input_ids=torch.tensor([row]),
                max_new_tokens=len(row) + 49,
                num_beams=1,
                do_sample=False,
                decoder_start_token_id=0,
                suppress_tokens=[0],
            )[0]
        written = [number for number in theirs.tolist()[1:] if number != 1]
        expected = of_ours(np.array(written, int), t5.size)
        ours = module._search_as_exported(tf.constant([text]), tf.zeros([1, 0], tf.int32))[0]
        assert [number for number in ours.numpy()[0, 0] if number != EOS] == expected.tolist()


def test_sentinels_and_rows_without_a_piece_have_names(t5, module):
    pieces = module.vocabulary.target.pieces
    assert len(pieces) == t5.size + 1
    assert pieces[len(t5.pieces) + SENTINELS - 1] == "\u2581<extra_id_0>"
    assert pieces[-2] == "<unused 2>"
    assert pieces[-1] == t5.pieces[3]


def test_broken_pieces_and_an_unknown_activation_are_refused(t5, tmp_path):
    folder = shutil.copytree(t5.folder, tmp_path / "t5")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match=r"`vocab_size` of .* 100 sentinels\. Received: \d+"):
        imported.module_of(PretrainedFolder(folder))
    # To name so many sentinels would take all memory.
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 2000000000}')
    with pytest.raises(ValueError, match=r"`vocab_size` of .* 2000000000 sentinels"):
        imported.module_of(PretrainedFolder(folder))
    (folder / "spiece.model").write_bytes(b"")
    with pytest.raises(ValueError, match=r"spiece\.model is not a SentencePiece model"):
        imported.module_of(PretrainedFolder(folder))
    (folder / "spiece.model").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no spiece\.model\. It has config\.json"):
        imported.module_of(PretrainedFolder(folder))
    change(folder, feed_forward_proj="gated-silu")
    with pytest.raises(ValueError, match=r"`feed_forward_proj` .*Received: gated-silu\."):
        hugging_face.load(folder)
