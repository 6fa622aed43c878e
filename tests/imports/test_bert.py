"""Weights, labels and pieces of BERTs as hubs have them, without a model."""

import json

import pytest
import small_folders
from small_folders import config_of

from keras_transformer.imports import bert, bert_text, vit
from keras_transformer.imports.folder_files import SettingsFiles
from pipelines.vocabularies.word_pieces import SPECIAL

CONFIG = {**small_folders.BERT, "num_hidden_layers": 2}


@pytest.mark.parametrize("architecture", list(bert.HEADED))
def test_norms_may_have_the_names_of_tensorflow(architecture):
    """As those of bert-base-uncased and all other original ones have them, heads included."""
    config = config_of(bert, {**CONFIG, "architectures": [architecture]})
    names = [f"bert.{weight.theirs}" for weight in bert.table(config)]
    original = [
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        for name in names
    ]
    norms = 1 + 2 * config.num_hidden_layers + bool(bert.HEADS_OF[architecture] == bert.PREDICTION)
    assert len(set(original) - set(names)) == 2 * norms
    assert [bert.plain_name(name) for name in original] == [
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
def test_only_line_feeds_part_the_pieces_of_a_vocabulary(tmp_path, end, closed):
    """That of bert-base-chinese has U+2028, at which `str.splitlines` would part too."""
    pieces = [*SPECIAL, "a", "\u2028", "\x85", "b"]
    text = end.join(pieces) + (end if closed else "")
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    assert bert_text.load_vocabulary(SettingsFiles(tmp_path)).pieces == pieces


@pytest.mark.parametrize(
    "settings",
    [
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": "cls"},
    ],
)
def test_vectors_that_are_no_mean_are_refused(tmp_path, settings):
    """Such as those of BGE."""
    path = tmp_path / "1_Pooling" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"word_embedding_dimension": 8, **settings}))
    with pytest.raises(ValueError, match=r"config\.json must be mean, .* Received: cls"):
        bert_text.refuse_other_vectors(SettingsFiles(tmp_path))


def test_vectors_that_are_the_mean_are_taken(tmp_path):
    bert_text.refuse_other_vectors(SettingsFiles(tmp_path))
    path = tmp_path / "1_Pooling" / "config.json"
    path.parent.mkdir()
    for settings in (
        {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "include_prompt": True},
        {"pooling_mode": "mean", "include_prompt": True},
        {},
    ):
        path.write_text(json.dumps(settings))
        bert_text.refuse_other_vectors(SettingsFiles(tmp_path))
