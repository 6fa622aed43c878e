"""Folders that others wrote: a good one is read, a broken one is refused by one line that names the
file, before anything is built or written.
"""

import json
import os
import shutil
import struct
import time
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_folders import BERT, CONFIGS, PIECES, TOKENIZER, VECTORS, change, tensors_of, write

from keras_transformer import import_model
from keras_transformer.imports import bert, gpt2, hugging_face, m2m_100, marian_mt, t5, vit
from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.saved_models import write as written
from keras_transformer.tasks import imported
from pipelines import json_files
from pipelines.special_ids import EOS, UNK
from pipelines.vocabularies.other_order import in_order
from pipelines.vocabularies.vocabulary import Vocabulary

safetensors = pytest.importorskip("safetensors.numpy", reason="install the extra [imports]")
TABLE = "embeddings.word_embeddings.weight"


class Accepted(Exception):
    """A folder was read to its end: only building the model is left."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_built():
    """End each test where the model would be built."""

    def model(self, pieces=None):
        dict(self.arrays(pieces)[1])
        raise Accepted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PretrainedFolder, "model", model)
        yield


def text(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def config(content):
    return text("config.json", content)


def setting(name="config.json", **changes):
    return lambda folder: change(folder, name, **changes)


def weight(transform):
    """Replace the array of one weight."""

    def changes(folder):
        tensors = tensors_of(bert, BERT)
        tensors[TABLE] = transform(tensors[TABLE])
        safetensors.save_file(tensors, folder / "model.safetensors")

    return changes


def header(entries, data=b"", length=None):
    content = json.dumps(entries).encode()
    size = struct.pack("<Q", len(content) if length is None else length)
    return text("model.safetensors", size + content + data)


def fp8(folder):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8 : 8 + size])
    begin, end = entries[TABLE]["data_offsets"]
    data = content[8 + size :]
    data = data[:begin] + data[begin : begin + (end - begin) // 4] + data[end:]
    for entry in entries.values():
        if entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [n - (end - begin) * 3 // 4 for n in entry["data_offsets"]]
    entries[TABLE] |= {"dtype": "F8_E4M3", "data_offsets": [begin, begin + (end - begin) // 4]}
    header(entries, data)(folder)


def in_place_of(name, make):
    def changes(folder):
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return changes


def lost(name):
    return lambda folder: (folder / name).unlink()


def one_nan(array):
    return np.where(array == array.max(), np.nan, array)


def tokenizer(**changes):
    """tokenizer.json in place of vocab.txt."""

    def changed(folder):
        lost("vocab.txt")(folder)
        model = {**TOKENIZER["model"], **changes}
        model = {key: value for key, value in model.items() if value is not None}
        (folder / "tokenizer.json").write_text(json.dumps({**TOKENIZER, "model": model}))

    return changed


def instead(piece):
    return text("vocab.txt", "\n".join([*PIECES[:-1], piece]).encode())


def modules(*more, pooling="1_Pooling"):
    def changed(folder):
        change(folder, architectures=["BertModel"])
        entries = [VECTORS[0], {**VECTORS[1], "path": pooling}, *more]
        (folder / "modules.json").write_text(json.dumps(entries))

    return changed


def sharded(*, gone="", extra=False, saved_again=False, **wrong):
    """Two files of weights and their index, maybe left by an earlier save."""

    def changed(folder):
        tensors = tensors_of(bert, BERT)
        (folder / "model.safetensors").unlink()
        names = ["model-1.safetensors", "model-2.safetensors"]
        places = {name: names[number % 2] for number, name in enumerate(tensors)}
        for file in names:
            own = {name: tensors[name] for name, place in places.items() if place == file}
            safetensors.save_file(own, folder / file)
        if extra:
            safetensors.save_file({"x": np.ones(2)}, folder / "more.safetensors")
        index = {"metadata": {}, "weight_map": {**places, **wrong}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        (folder / gone).unlink() if gone else None
        if saved_again:
            for file in names:
                safetensors.save_file({name: -part for name, part in own.items()}, folder / file)
            safetensors.save_file(tensors, folder / "model.safetensors")

    return changed


TOKENS = m2m_100.TOKENIZER
HUGE = 10**9
BROKEN = {
    "fp8": (fp8, r"model\.safetensors: the weight embeddings\.word.* must be of F64, .* F8_E4M3"),
    "family a list": (setting(model_type=["bert"]), r"`model_type` of .*Received: a list"),
    "no family": (config(b"{}"), r"`model_type` of .*config\.json .*null"),
    "another family": (
        setting(model_type="llama"),
        r"`model_type` of .* must be one of bert, gpt2.*: llama\. Import another model\.$",
    ),
    "sizes": (config(b'{"model_type": "gpt2", "n_layer": 2}'), r"lacks vocab_size, n_embd, n_h"),
    "gpt2's act": (
        setting(**CONFIGS[gpt2], activation_function="tanh"),
        r"`activation_f.*: tanh\.",
    ),
    "act a list": (setting(hidden_act=["gelu"]), r"`hidden_act` of .*config\.json.*a list"),
    "labels with gaps": (setting(id2label={"0": "a", "2": "b"}), r"`id2label` of .*with 1"),
    "epsilon 0": (setting(layer_norm_eps=0), r"`layer_norm_eps` of .*`float` > 0.*Received: 0"),
    "epsilon": (setting(layer_norm_eps="x"), r"`layer_norm_eps` of .*`float`.*Received: x"),
    "brackets": (config(b"[" * 200_000), r"config\.json .*brackets nest too deeply"),
    "a list": (
        config(b"[1]"),
        r"config\.json is damaged: it must hold a JSON object\. .*: a list\.",
    ),
    "twice": (config(b'{"a": 1, "a": 2}'), r"config\.json .*names a twice"),
    "half": (config(b'{"a": "\\ud800"}'), r"config\.json is damaged: it is not JSON"),
    "UTF-8": (config(b'{"a": "\xff"}'), r"config\.json .*UTF-8.*byte 7"),
    "layers": (setting(num_hidden_layers=HUGE), r"'encoder\.layer\.1\..*of the family bert has"),
    "width": (setting(hidden_size=HUGE), r"word_embeddings.* \(10, 4\), expected \(10, 1000000000"),
    "too huge": (setting(hidden_size=10**30), r"`hidden_size` of .*Received: 1000000000000"),
    "true": (setting(num_hidden_layers=True), r"`num_hidden_layers` of .*Received: true"),
    "0": (setting(hidden_size=0), r"`hidden_size` of .*`int` >= 1\. Received: 0"),
    "heads": (setting(num_attention_heads=3), r"config\.json: .*divisible"),
    "dropout": (setting(hidden_dropout_prob=float("nan")), r"`hidden_dropout_prob` of .*NaN"),
    "fewer layers": (
        lambda folder: safetensors.save_file(
            tensors_of(bert, {**BERT, "num_hidden_layers": 2}), folder / "model.safetensors"
        ),
        r"`num_hidden_layers` of .*larger: the weights have encoder\.layer\.1\..*Received: 1\.",
    ),
    "quantized": (setting(quantization_config={"x": 1}), r"`quantization_config` of .*null"),
    "a device": (
        in_place_of("config.json", lambda path: path.symlink_to("/dev/zero")),
        r"config\.json must be a file\. Received: a device",
    ),
    "a folder": (in_place_of("vocab.txt", os.mkdir), r"vocab\.txt must be a file.*a folder"),
    "weights a FIFO": (in_place_of("model.safetensors", os.mkfifo), r"safetensors must be a file"),
    "empty": (
        lambda folder: [path.unlink() for path in folder.iterdir()],
        r"must be a folder with config\.json.*It has no files",
    ),
    "others": (lost("config.json"), r"must be a folder with .* It has model\.safetensors, vocab"),
    "NUL": (instead("a\0b"), r"line 10 of .*vocab\.txt must not have the character NUL"),
    "long": (instead("é" * 129), r"line 10 of .*vocab\.txt must have at most 256 bytes.* 258"),
    "twice a piece": (instead("on"), r"line 10 of .*vocab\.txt must be no other's.*'on'.* id 6"),
    "no UTF-8": (text("vocab.txt", b"\xff"), r"vocab\.txt is damaged: it must be UTF-8"),
    "no [PAD]": (text("vocab.txt", b"a\nb"), r"vocab\.txt: .*one without \[PAD\]"),
    "more pieces": (instead("x\nmore"), r"vocab\.txt must have at most 10 pieces, the `voc.* 11"),
    "no vocabulary": (lost("vocab.txt"), r"has no vocabulary: neither vocab\.txt nor"),
    "another model": (tokenizer(type="BPE"), r"`type` of `model` of .* WordPiece\. Received: BPE"),
    "no vocab": (tokenizer(vocab=None), r"`model` of .*tokenizer\.json lacks vocab"),
    "gaps": (
        tokenizer(vocab={**TOKENIZER["model"]["vocab"], "turn": 20}),
        r"tokenizer\.json must number its 10 pieces from 0, each once\. Received: turn: 20",
    ),
    "ids": (tokenizer(vocab={"a": True}), r"`vocab` of `model` of .*must be `int`"),
    "suffix": (tokenizer(continuing_subword_prefix="@@"), r"`continuing_subword_prefix` of .*@@"),
    "another cutter": (setting(TOKENS, tokenizer_class="My"), r"`tokenizer_class` of .*config.*My"),
    "two vocabularies": (
        setting("tokenizer.json", model={**TOKENIZER["model"], "vocab": {"a": 0}}),
        r"vocab\.txt and .*tokenizer\.json must have the same pieces",
    ),
    "NaN": (weight(one_nan), r"model\.safetensors: the weight embeddings\.word.* finite .* 1 oth"),
    "float64": (weight(lambda array: array.astype(float) * 1e300), r"must have finite numbers"),
    "int8": (weight(lambda array: array.astype(np.int8)), r"must be of F64.*Received: I8"),
    "two files": (
        lambda folder: shutil.copy(folder / "model.safetensors", folder / "other.safetensors"),
        r"each weight once\. Received: .* model\.saf.*other",
    ),
    "no weights": (lost("model.safetensors"), r"has no weights: a file that ends in"),
    "header beyond": (header({}, length=2**40), r"model\.safetensors is damaged \("),
    "shard": (
        sharded(gone="model-2.safetensors"),
        r"model-2\.safetensors does not exist, and .*ind",
    ),
    "not there": (sharded(x="model-1.safetensors"), r"model-1\.safetensors lacks the weight x"),
    "elsewhere": (sharded(x="../x.safetensors"), r"`weight_map` of .*beside it.*\.\./x"),
    "Dense": (
        modules({"idx": 2, "name": "2", "path": "2_Dense", "type": "st.models.Dense"}),
        r"modules\.json must have the modules Transformer, Pooling, Normalize.*Dense",
    ),
    "at ''": (modules(pooling=""), r"`path` of the second module .* must be in it"),
    "above it": (modules(pooling="../1_Pooling"), r"`path` of the second module .* must be in it"),
    "modules": (modules(5), r"modules\.json is damaged: it must hold a list of objects"),
}
# The rows of BROKEN that lack a file.
ABSENT = ("empty", "others", "no weights", "no vocabulary")
PICTURES = "preprocessor_config.json"
BROKEN_PICTURES = {
    "mean": (setting(PICTURES, image_mean=None), r"`image_mean` of .*preprocessor_config\.j.*null"),
    "deviation 0": (setting(PICTURES, image_std=0), r"`image_std` of .*`float` > .*Received: 0"),
    "deviation 1e9": (setting(PICTURES, image_std=1e9), r"`image_std` of .*`float` <= 1000"),
    "one of 0": (setting(PICTURES, image_std=[0.5, 0, 0.5]), r"`image_std` of .*Received: a list"),
    "not scaled": (setting(PICTURES, do_rescale=False), r"`do_rescale` of .*must be true\. .*: f"),
    "scaled to 2": (
        setting(PICTURES, rescale_factor=1 / 127.5),
        r"`rescale_factor` of .*json must be 1/255\. Received",
    ),
    "no classes": (setting(architectures=["ViTModel"]), r"ViTForImageClass.*\. .*: ViTModel"),
    "two channels": (
        setting(PICTURES, image_mean=[0.5] * 2),
        r"`image_mean` of .*3 numbers or one",
    ),
}


GENERATION = "generation_config.json"
BROKEN_TRANSLATORS = {
    "two tables": (
        setting(decoder_vocab_size=8),
        r"`decoder_vocab_size` of .*config\.json must be vocab_size, 9\. Received: 8",
    ),
    "unlike heads": (
        setting(decoder_attention_heads=1),
        r"`decoder_attention_heads` of .* encoder_attention_heads, 2\. Received: 1",
    ),
    "pad and end one": (setting(pad_token_id=0), r"`pad_token_id` of .*another id than eos_token_"),
    "an id beyond": (setting(decoder_start_token_id=9), r"`decoder_start_token_id` of .*below 9"),
    "more layers": (setting(encoder_layers=HUGE), r"lacks the weight 'encoder\.layers\.1\."),
    "samples": (
        setting(GENERATION, do_sample=True),
        r"`do_sample` of .*generation_config\.json must be false.*Received: true",
    ),
    "barred words": (
        setting(GENERATION, bad_words_ids=[[1, 2]]),
        r"`bad_words_ids` of .*generation_config\.json must be lists of one id below 9",
    ),
    "another start": (
        setting(GENERATION, decoder_start_token_id=1, eos_token_id=[0], pad_token_id=None),
        r"`decoder_start_token_id` of .*generation_config\.json must be 8, as in .*Received: 1",
    ),
    "another end": (setting(GENERATION, eos_token_id=[0, 3]), r"`eos_token_id` of .*0, .*: a list"),
    "a first piece": (setting(GENERATION, forced_bos_token_id=3), r"`forced_bos_token_id` .* null"),
    "barred by config.json": (
        setting(bad_words_ids=[[1, 2]]),
        r"`bad_words_ids` of .*/config\.json must be lists of one id below 9",
    ),
    "ids with a gap": (setting("vocab.json", a=9), r"vocab\.json must number its 9 pieces .*a: 9"),
    "more pieces": (setting("vocab.json", more=9), r"vocab\.json must have at most 9 .*: 10"),
    "end elsewhere": (
        setting("vocab.json", **{"</s>": 2, "a": 0}),
        r"`</s>` of .*vocab\.json must be 0, as in config\.json\. Received: 2",
    ),
    "no pieces": (lost("vocab.json"), r"has no vocab\.json\. It has"),
    "no spm": (lost("target.spm"), r"has no target\.spm\. It has"),
    "spm damaged": (text("source.spm", b"x"), r"source\.spm is not a SentencePiece model"),
    "no target vocabulary": (setting(TOKENS, separate_vocabs=True), r"has no target_vocab\.json"),
}
BROKEN_OF_MANY = {
    "few rows": (setting(vocab_size=9), r"shared\.weight is \(40, 4\), expected \(9, 4\)"),
    "no labels": (setting(TOKENS, additional_special_tokens=[]), r"must name the labels of langu"),
    "no target": (
        setting(TOKENS, tgt_lang=None),
        r"into which language. Pass --to_language: deu_Latn, eng_Latn\.",
    ),
    "an unknown target": (setting(TOKENS, tgt_lang="tlh"), r"`target_language` must be one of"),
    "legacy": (setting(TOKENS, legacy_behaviour=True), r"`legacy_behaviour` of .*false.*: true"),
    "tokens": (
        setting(TOKENS, added_tokens_decoder={"60": {"content": "fra_Latn"}}),
        r"`vocab_size` of .*config\.json must be at least the 61 pieces.*Received: 40",
    ),
    "digits": (
        setting(TOKENS, added_tokens_decoder={"9" * 5000: {"content": "fra_Latn"}}),
        r"`vocab_size` of .*config\.json must be at least the .* pieces.*Received: 40",
    ),
    "no label": (
        setting(TOKENS, added_tokens_decoder={"39": {}}, additional_special_tokens=[]),
        r"must name the labels of langu",
    ),
    "spm damaged": (text(m2m_100.SPM, b"x"), r"bpe\.model is not a SentencePiece model"),
}
TABLES = {
    bert: BROKEN,
    vit: BROKEN_PICTURES,
    marian_mt: BROKEN_TRANSLATORS,
    m2m_100: BROKEN_OF_MANY,
}
ROWS = [(family, name) for family, table in TABLES.items() for name in table]


def import_of(folder):
    imported.module_of(PretrainedFolder(folder))


@pytest.mark.parametrize(
    ("family", "name"), ROWS, ids=[f"{family.MODEL_TYPE} {name}" for family, name in ROWS]
)
def test_a_broken_folder_is_refused_in_one_line(tmp_path, family, name):
    folder = write(tmp_path / "folder", family)
    damage, message = TABLES[family][name]
    damage(folder)
    before = sorted(tmp_path.rglob("*"))
    kinds = FileNotFoundError if name in ABSENT else (ValueError, OSError)
    with pytest.raises(kinds, match=message) as caught:
        import_of(folder)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("family", [marian_mt, m2m_100, vit])
def test_control_a_whole_folder_is_read(tmp_path, family):
    folder = write(tmp_path / "folder", family)
    # Pictures that are not normalized need no mean.
    change(folder, PICTURES, do_normalize=False, image_mean=None, image_std=0.1)
    with pytest.raises(Accepted):
        import_of(folder)


def stored_once(folder):
    """As `safetensors.torch.save_model` writes tied weights: keras-hub#3075."""
    tensors = tensors_of(bert, {**BERT, "architectures": ["BertForMaskedLM"]})
    bias = tensors.pop("cls.predictions.bias")
    tensors["cls.predictions.decoder.bias"] = bias
    path = folder / "model.safetensors"
    named = {"cls.predictions.bias": "cls.predictions.decoder.bias", "format": "pt"}
    safetensors.save_file(tensors, path, named)
    change(folder, architectures=["BertForMaskedLM"])


def padded(folder):
    write(folder, vocab_size=16)


def links(folder):
    """As in the cache of Hugging Face's hub."""
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(folder.parent / f"blob-{name}")
        (folder / name).symlink_to(f"../blob-{name}")


GOOD = {
    "as it is": (lambda folder: None, ""),
    "padded": (padded, ""),
    "stored once": (stored_once, ""),
    "links": (links, ""),
    "beside other files": (
        lambda folder: [(folder / name).touch() for name in ("a.npz", "b.index", "checkpoint")],
        "",
    ),
    "sharded": (sharded(), ""),
    "bfloat16": (weight(lambda array: array.astype("bfloat16")), ""),
    "an extra shard": (sharded(extra=True), "files: more.safetensors"),
    "old shards": (sharded(saved_again=True), "files: model-1.safetensors, model-2.safetensors"),
    "tokenizer": (tokenizer(), ""),
    "unknown": (setting(rope=5, nothing=None), "config.json: rope"),
    "other files": (setting("generation_config.json", a=1), "files: generation_config.json"),
    "added": (
        setting(
            "tokenizer.json", **TOKENIZER, added_tokens=[{"content": "the"}, {"content": "[U]"}]
        ),
        "tokenizer.json: added_tokens.[U]",
    ),
    "sentences": (modules(), ""),
    "unread": (
        lambda folder: safetensors.save_file(
            {**tensors_of(bert, BERT), "embeddings.position_ids": np.arange(8)},
            folder / "model.safetensors",
        ),
        "weights: embeddings.position_ids",
    ),
    "longest": (
        lambda folder: (
            change(folder, architectures=["BertModel"]),
            change(folder, "sentence_bert_config.json", max_seq_length=4, other=1),
        ),
        "sentence_bert_config.json: other",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_folder_is_read_and_its_unused_parts_are_named(tmp_path, name):
    path = write(tmp_path / "folder")
    change_files, unused = GOOD[name]
    change_files(path)
    folder = imported.opened(path)
    with pytest.raises(Accepted):
        imported.module_of(folder)
    if name in ("stored once", "sentences", "longest", "padded"):
        assert unused in folder.unused_parts()
    else:
        assert folder.unused_parts() == (f"Not used of {path}: {unused}." if unused else "")
    # sentence-transformers cuts a text at max_seq_length.
    positions = 4 if name == "longest" else BERT["max_position_embeddings"]
    config, arrays = folder.arrays()
    assert config.max_position_embeddings == positions
    assert len(arrays["embedding/encoding/table"]) == positions
    if name == "old shards":
        saved = tensors_of(bert, BERT)["embeddings.word_embeddings.weight"]
        np.testing.assert_array_equal(arrays["embedding/table"], saved)


@pytest.mark.parametrize("family", [gpt2, t5, marian_mt, m2m_100])
def test_a_tied_table_may_be_stored_under_another_name_alone(tmp_path, family):
    """As Accelerate stores it: under the first of its names, without a note of the others."""
    folder = write(tmp_path / "folder", family)
    expected = dict(PretrainedFolder(folder).arrays()[1])
    tensors = tensors_of(family, CONFIGS[family])
    [(name, stored)] = family.TIES.items()
    renamed = {stored if own == name else own: array for own, array in tensors.items()}
    safetensors.save_file(renamed, folder / "model.safetensors")
    opened = PretrainedFolder(folder)
    np.testing.assert_equal(dict(opened.arrays()[1]), expected)
    assert opened._tensors.unread() == []


@pytest.mark.parametrize("family", [marian_mt, m2m_100])
def test_an_unknown_piece_is_left_out_of_a_translation(tmp_path, family):
    """As by `skip_special_tokens` of transformers."""
    folder = PretrainedFolder(write(tmp_path / "folder", family))
    target = family.vocabulary(folder).target
    [piece, *_] = range(EOS + 1, target.size)
    assert target.processor.decode([piece, UNK]) == target.processor.decode([piece])
    plain = Vocabulary(in_order(target.model, target.pieces[EOS + 1 :])[0])  # control
    assert plain.processor.decode([piece, UNK]) != plain.processor.decode([piece])


@pytest.mark.parametrize(
    ("family", "key", "message"),
    [
        (gpt2, "n_layer", r"lacks the weight 'h\.1\..*of the family gpt2 has"),
        (gpt2, "n_positions", r"wpe\.weight is \(.*expected \("),
        (t5, "num_layers", "lacks the weight"),
        (t5, "d_model", r", expected \("),
    ],
)
def test_sizes_of_every_family_are_compared_before_anything_is_built(
    tmp_path, family, key, message
):
    folder = write(tmp_path / "folder", family)
    assert PretrainedFolder(folder).arrays()[1]
    change(folder, **{key: HUGE})
    with pytest.raises(ValueError, match=message):
        hugging_face.load(folder)


def test_a_weight_of_another_size_is_named_as_its_file_names_it(tmp_path):
    folder = write(tmp_path / "folder", gpt2)
    tensors = tensors_of(gpt2, CONFIGS[gpt2])
    renamed = {f"transformer.{name}": array for name, array in tensors.items()}
    safetensors.save_file(renamed, folder / "model.safetensors")
    change(folder, n_positions=5)
    expected = r"transformer\.wpe\.weight is \(4, 4\), expected \(5, 4\)"
    with pytest.raises(ValueError, match=expected):
        hugging_face.load(folder)


def test_an_export_that_fails_leaves_no_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "folder")
    flags = {"from": "folder", "model_dir": "run", "export_dir": "saved", "version": None}

    def fails(*_, **__):
        raise OSError("the disk is full")

    module = types.SimpleNamespace(
        write_files=lambda path: None, facts=dict, variables_by_path=dict, weights=[]
    )
    monkeypatch.setattr(imported, "module_of", lambda *_: ("classification", module))
    monkeypatch.setattr(imported, "description", lambda *_: {"task": "classification"})
    monkeypatch.setattr(written, "export", fails)
    with pytest.raises(OSError, match="disk is full"):
        import_model.main(types.SimpleNamespace(**flags, from_language=None, to_language=None))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


def test_a_run_of_our_own_needs_no_import(tmp_path):
    for name in ("model.json", "averaged.npz"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"is a run of our own, which needs no import\. Use it"):
        imported.opened(tmp_path)


def test_a_file_that_is_too_big_is_refused_without_being_read(tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(ValueError, match=r"must have at most 16,777,216 bytes. Received: more"):
        json_files.read_object(path, "Correct it.")


# What `mutated` puts into a file.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["", "gelu", "mean", "\x00", "BertModel", "../x", 10**9, 10**400, -1, 1e-9]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
SETTINGS = {
    "config.json": [*BERT, *bert.Config.FIXED, "problem_type", "tie_word_embeddings"],
    "preprocessor_config.json": ["do_rescale", "rescale_factor", "image_mean", "image_std"],
    "tokenizer_config.json": ["do_lower_case", "strip_accents", "tokenizer_class"],
    "tokenizer.json": [*TOKENIZER, "post_processor", "pre_tokenizer"],
    "1_Pooling/config.json": ["pooling_mode", "pooling_mode_cls_token"],
    "sentence_bert_config.json": ["do_lower_case"],
}
CLASSES = ["BertModel", "BertForMaskedLM", "BertForSequenceClassification"]


def mutated(draw, name, content):
    """The bytes of a file, damaged at random."""
    kind = draw(st.sampled_from(["keys", "keys", "bytes", "whole", "pieces"]))
    if kind == "keys" and name in SETTINGS:
        document = json.loads(content or b"{}")
        for _ in range(draw(st.integers(1, 3))):
            document[draw(st.sampled_from(SETTINGS[name]) | st.text(max_size=3))] = draw(JSON)
        model = document.get("model")
        if name == "tokenizer.json" and isinstance(model, dict) and draw(st.booleans()):
            document["model"] = {**model, draw(st.sampled_from(["vocab", "type"])): draw(JSON)}
        return json.dumps(document).encode()
    if kind == "keys" and name == "modules.json":
        entries = [*VECTORS, draw(JSON)]
        entries[0] = {**entries[0], draw(st.sampled_from(["path", "type", "x"])): draw(JSON)}
        return json.dumps(draw(st.permutations(entries))).encode()
    if kind == "keys" and name == "model.safetensors":
        size = struct.unpack("<Q", content[:8])[0]
        entries = json.loads(content[8 : 8 + size])
        for _ in range(draw(st.integers(1, 2))):
            tensor = draw(st.sampled_from(sorted(entries)))
            key = draw(st.sampled_from(["dtype", "shape", "data_offsets"]))
            entries[tensor] |= {key: draw(JSON | st.sampled_from(["I8", "F8_E5M2"]))}
        changed = json.dumps(entries).encode()
        return struct.pack("<Q", len(changed)) + changed + content[8 + size :]
    if kind == "pieces" and name == "vocab.txt":
        pieces = draw(st.lists(st.sampled_from(PIECES) | st.text(max_size=300), max_size=4))
        return "\n".join(draw(st.permutations([*PIECES, *pieces]))).encode("utf-8", "surrogatepass")
    if kind == "whole":
        return draw(st.binary(max_size=40)) or json.dumps(draw(JSON)).encode()
    place = draw(st.integers(0, len(content)))
    return (
        content[:place] + draw(st.binary(max_size=3)) + content[place + draw(st.integers(0, 3)) :]
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of each of two families with all of its files: the content of each by its path."""
    folders = [write(tmp_path_factory.mktemp(f.MODEL_TYPE), f) for f in (bert, vit)]
    (folders[0] / "1_Pooling").mkdir()
    (folders[0] / "modules.json").write_text(json.dumps(VECTORS))
    for name in ("1_Pooling/config.json", "sentence_bert_config.json", "tokenizer_config.json"):
        (folders[0] / name).write_text("{}")
    (folders[0] / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return {
        folder: {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    }


def outcome(data, whole):
    """Break a folder at random and import it."""
    folder = data.draw(st.sampled_from(list(whole)))
    if "architectures" in (config := json.loads(whole[folder][folder / "config.json"])):
        config["architectures"] = [data.draw(st.sampled_from(CLASSES))]
        (folder / "config.json").write_text(json.dumps(config))
    paths = sorted(whole[folder])
    broken = data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=2, unique=True))
    try:
        for path in broken:
            name = str(path.relative_to(folder))
            path.write_bytes(mutated(data.draw, name, path.read_bytes()))
        # Half of the folders are read without vocab.txt.
        if data.draw(st.booleans()):
            (folder / "vocab.txt").unlink(missing_ok=True)
        import_of(folder)
    except Accepted:
        return "accepted"
    except (ValueError, OSError) as error:
        # Any other error would be a traceback for the user.
        message = str(error)
    finally:
        for path, content in whole[folder].items():
            path.write_bytes(content)
    assert len(message.splitlines()) == 1, message
    assert str(folder) in message, message
    return "refused"


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example]


@settings(max_examples=60, suppress_health_check=QUIET)
@given(data=st.data())
def test_a_folder_broken_at_random_is_read_or_refused_in_one_line(data, whole):
    outcome(data, whole)


@pytest.mark.slow
def test_ten_thousand_broken_folders(whole):
    counts = dict.fromkeys(("accepted", "refused"), 0)

    @settings(max_examples=10_000, suppress_health_check=QUIET)
    @given(data=st.data())
    def breaks(data):
        # CPU time, because any example may wait on a shared machine.
        began = time.process_time()
        counts[outcome(data, whole)] += 1
        assert time.process_time() - began < 5

    breaks()
    print(counts)
    assert min(counts.values()) > 300
    assert sum(counts.values()) >= 10_000
