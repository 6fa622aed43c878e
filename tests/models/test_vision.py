"""The Vision Transformer, imported, against that of the package transformers on torch."""

import json

import numpy as np
import pytest
import small_folders

from keras_transformer.imports import hugging_face, vit
from keras_transformer.layers.encoder_only import patches
from keras_transformer.models import VisionHyperparameters

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
