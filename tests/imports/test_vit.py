"""Pictures as ViTs of hubs scale them, without a model."""

import json

import numpy as np
import pytest

from keras_transformer.imports import hugging_face, vit

CONFIG = {**dict.fromkeys(vit.SIZES, 4), "model_type": "vit", "num_hidden_layers": 0}
SIZE = 3
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


@pytest.fixture
def tensors():
    """The weights of a ViT without layers, of patches of 3 x 3."""
    random = np.random.default_rng(1)
    shapes = {
        "embeddings.patch_embeddings.projection.weight": (4, 3, SIZE, SIZE),
        "embeddings.patch_embeddings.projection.bias": (4,),
        "embeddings.cls_token": (1, 1, 4),
        "embeddings.position_embeddings": (1, 2, 4),
        **dict.fromkeys(("layernorm.weight", "layernorm.bias"), (4,)),
        "classifier.weight": (2, 4),
        "classifier.bias": (2,),
    }
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("preprocessor", "mean", "deviation"),
    [
        (None, 0.5, 0.5),
        ({"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, 0.5, 0.5),
        (IMAGENET, *IMAGENET.values()),
        ({"do_normalize": False, **IMAGENET, "rescale_factor": 0.00392156862745098}, 0.0, 1.0),
    ],
)
def test_patches_are_those_of_pictures_scaled_as_the_folder_says(
    tmp_path, tensors, preprocessor, mean, deviation
):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    if preprocessor is not None:
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    found = vit.weights(hugging_face.read_config(tmp_path), tensors)
    picture = np.random.default_rng(2).uniform(size=(SIZE, SIZE, 3))
    kernel = tensors["embeddings.patch_embeddings.projection.weight"]
    scaled = (picture - np.array(mean)) / np.array(deviation)
    expected = np.einsum("ocij,ijc->o", kernel, scaled)
    expected += tensors["embeddings.patch_embeddings.projection.bias"]
    embedded = (2 * picture - 1).reshape(-1) @ found["embedding/kernel"] + found["embedding/bias"]
    np.testing.assert_allclose(embedded, expected, rtol=1e-5, atol=1e-5)
    assert {array.dtype for array in found.values()} == {np.dtype(np.float32)}


def test_pictures_that_are_not_scaled_to_1_are_refused(tensors):
    for settings in ({"do_rescale": False}, {"rescale_factor": 1 / 127.5}):
        with pytest.raises(ValueError, match=r"must have do_rescale=true and rescale_factor=1/255"):
            vit.weights({**CONFIG, "preprocessor": settings}, tensors)


def test_a_vit_without_classes_is_refused():
    with pytest.raises(ValueError, match=r"must be ViTForImageClassification\. Received: ViTModel"):
        vit.model({**CONFIG, "architectures": ["ViTModel"]})


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"id2label": {"0": "LABEL_0"}}, "single_label_classification, 1 labels"),
        ({"problem_type": "multi_label_classification"}, "multi_label_classification, 2 labels"),
    ],
)
def test_logits_that_are_no_choice_of_one_class_are_refused(settings, received):
    with pytest.raises(ValueError, match=rf"at least 2 labels .*Received: problem_type={received}"):
        vit.model({**CONFIG, **settings})
