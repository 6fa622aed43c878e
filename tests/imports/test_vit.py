"""Pictures as ViTs of hubs scale them, without a model; and weights that are read on access."""

import numpy as np
import pytest
import small_folders
from small_folders import config_of

from keras_transformer.imports import gpt2, vit
from keras_transformer.imports.family import ANOTHER, ArraysByPath
from pipelines.json_files import settings as settings_of

SIZE = 2
CONFIG = small_folders.VIT
GPT2 = {**small_folders.GPT2, "vocab_size": 9}
PATH = "preprocessor_config.json"
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def pictures_of(document):
    """What preprocessor_config.json says, checked."""
    pictures, _ = settings_of(vit.Pictures, document, PATH, ANOTHER)
    vit.check_pictures(pictures, config_of(vit, CONFIG), PATH)
    return pictures


@pytest.fixture
def tensors():
    """The weights of a ViT of patches of 2 x 2."""
    return small_folders.tensors_of(vit, CONFIG)


@pytest.mark.parametrize(
    ("preprocessor", "mean", "deviation"),
    [
        ({}, 0.5, 0.5),
        ({"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, 0.5, 0.5),
        (IMAGENET, *IMAGENET.values()),
        ({"do_normalize": False, **IMAGENET, "rescale_factor": 0.00392156862745098}, 0.0, 1.0),
    ],
)
def test_patches_are_those_of_pictures_scaled_as_the_folder_says(
    tensors, preprocessor, mean, deviation
):
    arrays = ArraysByPath(vit.table(config_of(vit, CONFIG)), tensors)
    ours = vit.for_ours(arrays, pictures_of(preprocessor))
    picture = np.random.default_rng(2).uniform(size=(SIZE, SIZE, 3))
    kernel = tensors["embeddings.patch_embeddings.projection.weight"]
    scaled = (picture - np.array(mean)) / np.array(deviation)
    expected = np.einsum("ocij,ijc->o", kernel, scaled)
    expected += tensors["embeddings.patch_embeddings.projection.bias"]
    embedded = (2 * picture - 1).reshape(-1) @ ours["embedding/kernel"] + ours["embedding/bias"]
    np.testing.assert_allclose(embedded, expected, rtol=1e-5, atol=1e-5)
    assert {array.dtype for array in ours.values()} == {np.dtype(np.float32)}


class NotingReads(dict):
    """Weights that note the names of those that were read."""

    read = ()

    def __getitem__(self, name):
        self.read = (*self.read, name)
        return super().__getitem__(name)


@pytest.mark.parametrize(
    ("family", "document", "changed", "weights_of"),
    [
        (vit, CONFIG, 2, lambda _, arrays: vit.for_ours(arrays, pictures_of({}))),
        (gpt2, GPT2, 1, lambda config, arrays: gpt2.of_run(config, arrays, 2)[1]),
    ],
)
def test_weights_that_stay_are_read_on_access(family, document, changed, weights_of):
    """They are read one by one: beside a new model memory need not hold them all."""
    tensors = NotingReads(small_folders.tensors_of(family, document))
    config = config_of(family, document)
    arrays = ArraysByPath(family.table(config), tensors)
    weights = weights_of(config, arrays)
    assert len(tensors.read) == changed
    assert weights.get([*arrays][-1]) is not None
    assert len(tensors.read) == changed + 1
