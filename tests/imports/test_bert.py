"""Weights, labels and pieces of BERTs as hubs have them, without a model."""

import json

import numpy as np
import pytest

from keras_transformer.imports import bert, bert_vocabulary, hugging_face
from pipelines.word_pieces import SPECIAL

CONFIG = {"model_type": "bert", "num_hidden_layers": 2}


def tensors():
    """A number for each weight of all classes of BERT, by the name that PyTorch gives it."""
    layers = [
        f"bert.encoder.layer.{number}.{theirs}"
        for number in range(CONFIG["num_hidden_layers"])
        for theirs, _ in bert.LAYER.values()
    ]
    embeddings = [f"bert.{theirs}" for theirs, _ in bert.EMBEDDINGS.values()]
    heads = [theirs for theirs, _ in bert.HEADS.values()]
    return {name: np.array(n) for n, name in enumerate([*embeddings, *layers, *heads])}


def test_norms_may_have_the_names_of_tensorflow():
    """As those of bert-base-uncased and all other original ones have them, heads included."""
    given = tensors()
    original = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): array
        for name, array in given.items()
    }
    assert len(set(original) - set(given)) == 2 * (1 + 2 * CONFIG["num_hidden_layers"] + 1)
    expected = bert.weights(CONFIG, given)
    assert len({int(number) for number in expected.values()}) == len(given)
    assert bert.weights(CONFIG, original) == expected


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"id2label": {"0": "LABEL_0"}}, "single_label_classification, 1 labels"),
        ({"problem_type": "multi_label_classification"}, "multi_label_classification, 2 labels"),
        ({"problem_type": "regression", "id2label": {"0": "x"}}, "regression, 1 labels"),
    ],
)
def test_logits_that_are_no_choice_of_one_label_are_refused(settings, received):
    config = {"architectures": ["BertForSequenceClassification"], **settings}
    with pytest.raises(ValueError, match=rf"at least 2 labels .*Received: problem_type={received}"):
        bert.model(config)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("closed", [True, False])
def test_only_line_feeds_part_the_pieces_of_a_vocabulary(tmp_path, end, closed):
    """That of bert-base-chinese has U+2028, at which `str.splitlines` would part too."""
    pieces = [*SPECIAL, "a", "\u2028", "\x85", "b"]
    text = end.join(pieces) + (end if closed else "")
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    assert bert_vocabulary.load(tmp_path).pieces == pieces


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
        hugging_face.refuse_another_pooling(tmp_path)


def test_vectors_that_are_the_mean_are_taken(tmp_path):
    hugging_face.refuse_another_pooling(tmp_path)
    path = tmp_path / "1_Pooling" / "config.json"
    path.parent.mkdir()
    for settings in (
        {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "include_prompt": True},
        {"pooling_mode": "mean", "include_prompt": True},
        {},
    ):
        path.write_text(json.dumps(settings))
        hugging_face.refuse_another_pooling(tmp_path)
