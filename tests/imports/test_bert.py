"""BERTs as hubs store them: names of weights, labels and pieces, without a model. What the
command `import_model` makes of a folder, and what it refuses before it reads one.
"""

import contextlib
import json
import types

import numpy as np
import pytest
import small_folders
from small_folders import BERT, config_of
from small_model import eagerly

from keras_transformer import import_model
from keras_transformer.imports import bert, bert_text, vit
from keras_transformer.imports.folder_files import SettingsFiles, plain_name
from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.tasks import imported
from pipelines.vocabularies.word_pieces import SPECIAL

CONFIG = {**small_folders.BERT, "num_hidden_layers": 2}


@pytest.mark.parametrize("architecture", list(bert.HEADED))
def test_norms_may_have_the_names_of_tensorflow(architecture):
    """bert-base-uncased and the other original BERTs use them, in the heads too."""
    config = config_of(bert, {**CONFIG, "architectures": [architecture]})
    names = [f"bert.{weight.theirs}" for weight in bert.table(config)]
    original = [
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        for name in names
    ]
    norms = (
        1 + 2 * config.num_hidden_layers + bool(bert.HEADS_OF[config.our_class] == bert.PREDICTION)
    )
    assert len(set(original) - set(names)) == 2 * norms
    assert [plain_name(name, bert.PREFIX) for name in original] == [
        name.removeprefix("bert.") for name in names
    ]


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"id2label": {"0": "LABEL_0"}}, "single_label_classification, 1 labels"),
        ({"problem_type": "multi_label_classification"}, "multi_label_classification, 2 labels"),
        ({"problem_type": "regression", "id2label": {"0": "x"}}, "regression, 1 labels"),
    ],
)
@pytest.mark.parametrize("family", [bert, vit])
def test_logits_that_are_no_choice_of_one_label_are_refused(family, settings, received):
    config = config_of(family, {**small_folders.CONFIGS[family], **settings})
    with pytest.raises(ValueError, match=rf"at least 2 labels .*Received: problem_type={received}"):
        family.hyperparameters(config)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("closed", [True, False])
def test_only_line_feeds_separate_the_pieces_of_a_vocabulary(tmp_path, end, closed):
    """bert-base-chinese has the piece U+2028, at which `str.splitlines` would split."""
    pieces = [*SPECIAL, "a", "\u2028", "\x85", "b"]
    text = end.join(pieces) + (end if closed else "")
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    assert bert_text.load_vocabulary(SettingsFiles(tmp_path)).pieces == pieces


PROMPT = {"include_prompt": True, "word_embedding_dimension": 8, "pooling_mode_cls_token": False}
POOLING = "1_Pooling/config.json"
PROMPTS = "config_sentence_transformers.json"
IS_CLS = r"`pooling_mode_cls_token` of .*config\.json must be false or null\. Received: true\. Imp"
IS_NONE = r"`pooling_mode_mean_tokens` of .*json must be true or null\. Received: false\."
QUERY = {"prompts": {"query": "query: ", "document": ""}, "similarity_fn_name": "cosine"}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        # BGE pools in this way.
        (POOLING, {"pooling_mode_mean_tokens": False}, IS_NONE),
        (POOLING, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, IS_CLS),
        (POOLING, {"pooling_mode": "cls"}, r"`pooling_mode` of .* mean or null\. Received: cls\."),
        (POOLING, {"pooling_mode_mean_tokens": True, **PROMPT}, None),
        (POOLING, {"pooling_mode": "mean", **PROMPT}, None),
        (POOLING, {}, None),
        (PROMPTS, {"default_prompt_name": "query"}, r"null, .* Received: query\. .* 'query: ' bef"),
        *((PROMPTS, {"default_prompt_name": name}, None) for name in ("document", "other", None)),
    ],
)
def test_vectors_that_are_no_mean_of_the_text_are_refused(tmp_path, name, settings, message):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings | (QUERY if name == PROMPTS else {})))
    files = SettingsFiles(tmp_path)
    refused = pytest.raises(ValueError, match=message) if message else contextlib.nullcontext()
    with refused:
        bert.for_vectors(files, config_of(bert, BERT))
    assert message or files.unused[name] == []


# What the command `import_model` makes of a folder, and what it refuses before it reads one.
PIECES = [*SPECIAL, "turn", "on", "the", "lamp", "##s", "off", "kitchen"]
TEXTS = ["turn on the kitchen lamps", "off"]
TAGS = {0: "O", 1: "B-name", 2: "I-name"}


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """A tagger of transformers, and the folder that it was saved in."""
    from theirs import random_of_theirs, torch, transformers

    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        id2label=TAGS,
    )
    kind = transformers.BertForTokenClassification
    model = random_of_theirs(kind, config, seed=1, scale=0.2)
    with torch.no_grad():
        # So that different words get different tags.
        model.bert.embeddings.word_embeddings.weight *= 10
        model.classifier.weight *= 10
    folder = tmp_path_factory.mktemp("tagger")
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    return folder, model


def test_a_bert_that_tags_words_keeps_its_tags(tagger):
    import torch

    folder, theirs = tagger
    task, module = imported.module_of(PretrainedFolder(folder))
    assert task == "tagging"
    assert module.facts()["labels"] == {"names": [*TAGS.values()]}
    with eagerly():
        tag_rows = module.tag(TEXTS)["tags"].numpy()
    # A word is tagged by its first piece: "lamps" has two.
    for text, tags in zip(TEXTS, tag_rows, strict=True):
        words = [f"{word[:4]} ##s" if word == "lamps" else word for word in text.split()]
        pieces = ["[CLS]", *" ".join(words).split(), "[SEP]"]
        ids = [PIECES.index(piece) for piece in pieces]
        with torch.no_grad():
            best = theirs(torch.tensor([ids])).logits.argmax(-1)[0].numpy()
        firsts = [n for n, piece in enumerate(pieces) if not piece.startswith(("##", "["))]
        assert [tag.decode() for tag in tags if tag] == [TAGS[best[n]] for n in firsts]
    assert len(np.unique(tag_rows[0])) > 1


def test_an_import_has_no_rows_behind_the_pieces(tmp_path):
    folder = PretrainedFolder(small_folders.write(tmp_path / "folder", vocab_size=16))
    tensors = small_folders.tensors_of(bert, {**BERT, "vocab_size": 16})
    count = len(small_folders.PIECES)
    _, module = imported.module_of(folder)
    [table] = [array for array in module.variables if array.shape == (count, BERT["hidden_size"])]
    np.testing.assert_array_equal(table, tensors["embeddings.word_embeddings.weight"][:count])
    assert len(folder.arrays()[1]["embedding/table"]) == 16


def test_an_existing_version_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {**BERT, "architectures": ["B"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "saved" / "3").mkdir(parents=True)

    names = {"from": ".", "model_dir": "run", "export_dir": "saved", "version": 3}
    flags = types.SimpleNamespace(**names, source_language=None, target_language=None)
    with pytest.raises(FileExistsError, match=r"saved/3 exists: a served version is never changed"):
        import_model.main(flags)
    assert not (tmp_path / "run").exists()
    # A control: with another version the folder is read.
    flags.version = 4
    with pytest.raises(ValueError, match=r"`architectures` of .*config\.json must be one of"):
        import_model.main(flags)
