"""GPT-2 as a run: its byte-level pieces in the graph, its logits and what it generates are those of
transformers.
"""

import json
import os
import shutil
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import printed
from theirs import random_of_theirs, torch, transformers

from keras_transformer.imports import hugging_face
from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.inference.generator import Generator
from keras_transformer.saved_models.session import SavedModel
from keras_transformer.server.costs import Sizes
from keras_transformer.tasks import imported
from pipelines.special_ids import BOS, EOS, PAD, UNK

tokenizers = pytest.importorskip("tokenizers")

END = "<|endoftext|>"
LINES = ["don't we'll  I've\n\n x = 3.14;", "a red cat ran home, the cat's tail", "déjà 日本語 123"]
ODD = " \n\t\r\x0b\x0c'stdvelrm.,;ab1２é日😀٣½\x00\x01\x02\x03"
ODD += "\u3000\u00a0\u2003\u0085\u200b\ufeff\u0301"


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A small GPT-2 of `transformers`, its tokenizer, and the folder that both were saved into."""
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    bpe.pre_tokenizer = byte_level(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    bpe.train_from_iterator(LINES * 9, trainer)
    document = json.loads(bpe.to_str())["model"]
    merges = [tuple(pair) for pair in document["merges"]]
    # Unlike in a release, the end has an id in the middle, and the table has rows without a piece.
    ids = {piece: number + (number >= 260) for piece, number in document["vocab"].items()}
    tokenizer = transformers.GPT2Tokenizer(vocab={**ids, END: 260}, merges=merges)
    config = transformers.GPT2Config(
        vocab_size=len(ids) + 3,
        n_positions=90,
        n_embd=8,
        n_layer=2,
        n_head=2,
        layer_norm_epsilon=1e-3,
    )
    config.eos_token_id = config.bos_token_id = 260
    model = random_of_theirs(transformers.GPT2LMHeadModel, config, seed=1, scale=0.3)
    folder = tmp_path_factory.mktemp("gpt2")
    model.save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({**ids, END: 260}))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    return types.SimpleNamespace(model=model, tokenizer=tokenizer, folder=folder)


@pytest.fixture(scope="module")
def module(gpt2):
    folder = PretrainedFolder(gpt2.folder)
    task, module = imported.module_of(folder)
    assert task == "language_modelling"
    assert "vocab" not in folder.unused_parts()
    return module


ON_JAX = """
import sys
import numpy as np
from keras_transformer.imports import hugging_face

np.savez(sys.argv[1], *map(np.asarray, hugging_face.load(sys.argv[2]).weights))
"""


@pytest.mark.slow
def test_a_model_on_jax_has_the_same_weights(gpt2, tmp_path):
    pytest.importorskip("jax")
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    weights = tmp_path / "weights.npz"
    printed(sys.executable, "-c", ON_JAX, str(weights), str(gpt2.folder), env=environment)
    on_tensorflow = hugging_face.load(gpt2.folder).get_weights()
    for ours, theirs in zip(on_tensorflow, np.load(weights).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def of_ours(ids):
    return [EOS if number == 260 else 4 + number - (number > 260) for number in ids]


CHARACTERS = st.sampled_from(ODD) | st.characters(codec="utf-8", max_codepoint=0x2FFF)
TEXTS = st.text(CHARACTERS, max_size=20)


@settings(max_examples=16)
@given(texts=st.lists(TEXTS, min_size=60, max_size=70))
def test_ids_are_those_of_transformers(gpt2, module, texts):
    vocabulary = module.vocabulary
    rows = vocabulary.tokenize(tf.constant(texts)).to_list()
    assert rows == [[*of_ours(gpt2.tokenizer(text)["input_ids"]), EOS] for text in texts]
    # And the text comes back, every byte.
    words = tf.ragged.constant([ids[:-1] for ids in rows], dtype=tf.int32, ragged_rank=1)
    assert vocabulary.detokenize(words).numpy().tolist() == [text.encode() for text in texts]


def test_bytes_that_are_no_text_are_read_as_the_replacement_character(module):
    [ids] = module.vocabulary.tokenize(tf.constant([b"a \xff\xc3b"])).to_list()
    [expected] = module.vocabulary.tokenize(tf.constant(["a \ufffd\ufffdb"])).to_list()
    assert ids == expected


def test_logits_are_those_of_transformers(gpt2, module):
    ids = gpt2.tokenizer("a red cat's  tail\n\nis 3.14")["input_ids"]
    rows = [ids, ids[::-1]]
    with torch.no_grad():
        expected = gpt2.model(torch.tensor([[260, *row] for row in rows])).logits.numpy()
    logits = module.logits(tf.constant([[BOS, *of_ours(row)] for row in rows])).numpy()
    order = of_ours(range(expected.shape[-1]))
    np.testing.assert_allclose(logits[..., order], expected, rtol=1e-5, atol=1e-5)
    # The ids that GPT-2 lacks are never likely.
    assert logits[..., [PAD, UNK, BOS]].max() < expected.min() - 1000
    expected = expected[0]
    total = np.log(np.exp(expected - expected.max(axis=1, keepdims=True)).sum(axis=1))
    scores = expected - expected.max(axis=1, keepdims=True) - total[:, None]
    ended = [*ids, 260]
    score = module.score(tf.constant(["a red cat's  tail\n\nis 3.14"]))
    np.testing.assert_allclose(
        score["log_probability"][0], scores[np.arange(len(ended)), ended].sum(), rtol=1e-4
    )


def test_it_generates_what_transformers_generates(gpt2, module):
    _, greedy = imported.module_of(PretrainedFolder(gpt2.folder))
    # Before its graph is made.
    greedy.options = module.options_of({"beam_size": 1, "max_length": "+20"})
    for prompt in ("the cat", "", "don't  "):
        ids = [260, *gpt2.tokenizer(prompt)["input_ids"]]
        with torch.no_grad():
            theirs = gpt2.model.generate(
                torch.tensor([ids]), max_new_tokens=20, do_sample=False, pad_token_id=260
            )[0].tolist()
        text = gpt2.tokenizer.decode([number for number in theirs if number != 260])
        [ours] = greedy.generate(tf.constant([prompt]))["generated"].numpy()
        assert ours.decode("utf-8", "replace") == text


def test_an_export_counts_the_pieces_of_bytes(gpt2, module, tmp_path):
    # Its pieces alone: nothing is generated.
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def cut(text):
        return {"generated": module.vocabulary.detokenize(module.vocabulary.tokenize(text))}

    served = tf.Module()
    served.tokenizer = module.source_tokenizer
    tf.saved_model.save(served, tmp_path, signatures={"serving_default": cut})
    (tmp_path / "model.json").write_text('{"task": "language_modelling"}')
    text = "\u6771\u4eac" * 300
    tokens = 1 + len(gpt2.tokenizer(text)["input_ids"])
    with pytest.raises(ValueError, match=f"has {tokens:,} tokens, more than the 1,024 allowed"):
        Generator.load(tmp_path).generate([text])
    assert Sizes.of(SavedModel(tmp_path)).tokens(text.encode()) >= tokens


def changed(gpt2, folder, **files):
    shutil.copytree(gpt2.folder, folder, dirs_exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        path.unlink() if content is None else path.write_text(content)
    return PretrainedFolder(folder)


def test_tokenizer_json_is_read_too(gpt2, module, tmp_path):
    gpt2.tokenizer.save_pretrained(tmp_path)
    document = json.loads((tmp_path / "tokenizer.json").read_text())
    added = {"added_tokens": [{"content": END}, {"content": "<|mine|>"}]}
    text = json.dumps(document | added)
    folder = changed(gpt2, tmp_path, vocab_json=None, merges_txt=None, tokenizer_json=text)
    assert imported.module_of(folder)[1].vocabulary.fingerprint == module.vocabulary.fingerprint
    assert "added_tokens.<|mine|>" in folder.unused_parts()
    assert END not in folder.unused_parts()


def of_json(**parts):
    """tokenizer.json in place of the other two files."""
    model = {"vocab": {}, "merges": []}
    return {"vocab_json": None, "tokenizer_json": json.dumps({"model": model, **parts})}


BROKEN = {
    "no files": ({"vocab_json": None}, r"has no vocab\.json and merges\.txt, and no tokenizer"),
    "no end": ({"vocab_json": '{"a": 0}'}, r"with <\|endoftext\|>, all bytes .* 256 of these miss"),
    "no number": ({"vocab_json": '{"a": "b"}'}, "must number its 1 pieces from 0.*Received: a: b"),
    "a list as a number": ({"vocab_json": '{"a": []}'}, "must number its 1 pieces from 0"),
    "no pairs": ({"merges_txt": "a b c\n"}, "1 other pairs"),
    "unknown pairs": ({"merges_txt": "# @\n"}, "1 other pairs"),
    "a list": ({"vocab_json": "[]"}, "must hold a JSON object"),
    "another model": (of_json(model={"type": "Unigram"}), r"`model` of .*json lacks vocab"),
    "normalized": (of_json(normalizer={"type": "NFC"}), r"`normalizer` of .* null\. .* object"),
    "a space before": (
        of_json(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True}),
        r"`add_prefix_space` of `pre_tokenizer` of .* must be false\. Received: true",
    ),
    "other words": (
        of_json(pre_tokenizer={"type": "Whitespace"}),
        r"`type` .* ByteLevel\. .*: W",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_line(gpt2, tmp_path, name):
    files, message = BROKEN[name]
    with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
        imported.module_of(changed(gpt2, tmp_path, **files))
    assert "\n" not in str(raised.value)
