"""Encoder-only models and the Vision Transformer, imported, against those of the package
transformers on torch.
"""

import json

import numpy as np
import pytest
import small_folders
from theirs import random_of_theirs, torch, transformers

from keras_transformer.imports import hugging_face, vit
from keras_transformer.layers.encoder_only import patches
from keras_transformer.models import (
    BareTextEncoder,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
    VisionHyperparameters,
)

TOKENS = np.array([[2, 5, 6, 7, 8, 3], [2, 9, 10, 3, 0, 0], [2, 11, 12, 4, 9, 3]])
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]])
PLACES = np.tile(np.arange(6), (3, 1))
REAL = TOKENS != 0
CONFIG = {"vocab_size": 13, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
CONFIG |= {"intermediate_size": 32, "max_position_embeddings": 8, "num_labels": 5}


def theirs(name, **changes):
    config = transformers.BertConfig(**{**CONFIG, **changes})
    return random_of_theirs(getattr(transformers, name), config, seed=3, scale=0.1)


def their_output(module):
    with torch.no_grad():
        return module(
            input_ids=torch.tensor(TOKENS),
            attention_mask=torch.tensor(REAL),
            token_type_ids=torch.tensor(SEGMENTS),
        )


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A function that saves a model of theirs and imports the folder as a model of ours."""

    def imported(module):
        folder = tmp_path_factory.mktemp("bert")
        module.save_pretrained(folder)
        return hugging_face.load(folder)

    return imported


def deviation(ours, theirs):
    theirs = theirs.numpy()
    assert ours.shape == theirs.shape
    assert np.abs(theirs).max() > 0.3
    return np.abs(np.asarray(ours) - theirs).max() / max(1.0, np.abs(theirs).max())


@pytest.fixture(scope="module")
def masked(ours):
    module = theirs("BertForMaskedLM")
    model = ours(module)
    assert isinstance(model, MaskedLanguageModel)
    return module, model


def test_logits_of_pieces_and_states_are_those_of_transformers(masked):
    module, model = masked
    logits = model((TOKENS, SEGMENTS, PLACES))
    output = their_output(module)
    assert deviation(logits[REAL], output.logits[REAL]) < 1e-5
    states = model.states(TOKENS, SEGMENTS)
    with torch.no_grad():
        expected = module.bert(
            torch.tensor(TOKENS), torch.tensor(REAL), torch.tensor(SEGMENTS)
        ).last_hidden_state
    assert deviation(states.numpy()[REAL], expected[REAL]) < 1e-5


def test_logits_at_some_places_are_those_of_the_whole_text(masked):
    _, model = masked
    whole = np.asarray(model((TOKENS, SEGMENTS, PLACES)))
    places = np.array([[4, 1], [2, 2], [0, 5]])
    some = np.asarray(model((TOKENS, SEGMENTS, places)))
    np.testing.assert_allclose(some, np.take_along_axis(whole, places[..., None], 1), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind", "changes"),
    [
        ("BertForSequenceClassification", TextClassifier, {}),
        ("BertForTokenClassification", TokenClassifier, {}),
        ("BertModel", BareTextEncoder, {"hidden_act": "gelu_new"}),
    ],
)
def test_labels_and_states_are_those_of_transformers(ours, name, kind, changes):
    module = theirs(name, **changes)
    model = ours(module)
    assert isinstance(model, kind)
    our_output = np.asarray(model((TOKENS, SEGMENTS)))
    output = their_output(module)
    expected = output.last_hidden_state if kind is BareTextEncoder else output.logits
    counted = slice(None) if kind is TextClassifier else REAL
    assert deviation(our_output[counted], expected[counted]) < 1e-5


def test_logits_of_the_mean_state_are_those_of_their_formula(ours):
    """In NumPy, from the states without padding."""
    first = ours(theirs("BertForSequenceClassification"))
    model = TextClassifier(first.hyperparameters, 5, pooling="mean")
    with pytest.raises(ValueError, match=r"^`pooling` must be first or mean.*='max'"):
        TextClassifier(first.hyperparameters, 5, pooling="max")
    model.set_weights(first.get_weights())
    states = np.asarray(model.states(TOKENS, SEGMENTS), np.float64)
    means = np.stack([row[real].mean(0) for row, real in zip(states, REAL, strict=True)])
    kernel, bias, labels, offset = map(np.float64, model.get_weights()[-4:])
    expected = np.tanh(means @ kernel + bias) @ labels + offset
    logits = np.asarray(model((TOKENS, SEGMENTS)))
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    # A control: the first state gives other logits.
    assert np.abs(np.asarray(first((TOKENS, SEGMENTS))) - expected).max() > 1e-2


def test_another_bert_is_refused(ours):
    module = theirs("BertModel", hidden_act="tanh")
    with pytest.raises(ValueError, match=r"`hidden_act` of .* one of gelu, .*Received: tanh\."):
        ours(module)
    with pytest.raises(ValueError, match=r"`architectures` .* one of BertModel.*Received: BertFor"):
        ours(theirs("BertForMultipleChoice"))


SIZES = {"height": 6, "width": 9, "channels": 3, "classes": 5, "patch_size": 3}
SIZES |= {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 4}
PICTURES = np.random.default_rng(1).uniform(size=(3, 6, 9, 3)).astype(np.float32)


def test_patches_are_squares_in_the_order_of_reading():
    """Against slices by hand; 6 x 9 pixels are 2 x 3 squares."""
    squares = np.array(patches(PICTURES, 3))
    expected = [
        PICTURES[:, top : top + 3, left : left + 3].reshape(3, -1)
        for top in (0, 3)
        for left in (0, 3, 6)
    ]
    np.testing.assert_array_equal(squares, np.stack(expected, axis=1))
    # A control: a square read by columns is another one.
    turned = PICTURES[:, :3, :3].transpose(0, 2, 1, 3).reshape(3, -1)
    assert not np.array_equal(squares[:, 0], turned)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small ViT of `transformers`, and the folder that it was saved into."""
    from theirs import random_of_theirs, torch, transformers

    config = transformers.ViTConfig(
        image_size=(6, 9),
        patch_size=3,
        num_channels=3,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        layer_norm_eps=1e-3,
        hidden_act="silu",
        num_labels=5,
        attn_implementation="eager",
    )
    kind = transformers.ViTForImageClassification
    model = random_of_theirs(kind, config, seed=2, scale=0.2)
    folder = tmp_path_factory.mktemp("vit")
    model.save_pretrained(folder)
    scaled = torch.tensor(2 * PICTURES - 1).permute(0, 3, 1, 2)
    with torch.no_grad():
        output = model(pixel_values=scaled, output_attentions=True, output_hidden_states=True)
        normed = model.vit.layernorm(output.hidden_states[-1])
    weights = np.stack([layer.numpy() for layer in output.attentions], axis=1)
    return folder, output.logits.numpy(), normed.numpy(), weights


def test_logits_states_and_attention_are_those_of_transformers(folder):
    path, logits, states, weights = folder
    ours = hugging_face.load(path)
    assert np.abs(logits).max() > 0.3
    np.testing.assert_allclose(np.array(ours(PICTURES)), logits, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.array(ours.states(PICTURES)), states, rtol=1e-5, atol=1e-5)
    attention = np.array(ours.attention_weights(PICTURES)["encoder"])
    np.testing.assert_allclose(attention, weights, rtol=1e-5, atol=1e-5)


def test_names_of_classes_are_in_the_order_of_the_logits():
    names = {str(number): f"c{number}" for number in (10, 2, 0, 1, 9, 8, 7, 6, 5, 4, 3)}
    config = small_folders.config_of(vit, {**small_folders.VIT, "id2label": names})
    assert config.labels() == [f"c{number}" for number in range(11)]
    assert small_folders.config_of(vit, small_folders.VIT).labels() == ["LABEL_0", "LABEL_1"]


def test_another_vit_is_refused(folder, tmp_path):
    config = json.loads((folder[0] / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "qkv_bias": False}))
    with pytest.raises(ValueError, match=r"`qkv_bias` of .* must be true\. Received: false\."):
        hugging_face.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 7}, r"`patch_size` must divide .* height=7, width=9\. Resize the pictures"),
        ({"patch_size": 2}, r"patch_size=2, height=6, width=9\. Try 3"),
        ({"channels": 0}, r"`channels` must be an integer, at least 1"),
        ({"d_model": 15}, r"`d_model` must be divisible by .* Try d_model=16"),
        ({"norm": "none"}, r"`norm` must be one of post, pre"),
        ({"norm_epsilon": 0.0}, r"`norm_epsilon` must be a number, at least 1e-12"),
        ({"dropout": 1}, r"`dropout` must be a number from 0 to 0.99"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        VisionHyperparameters(**{**SIZES, **change})
