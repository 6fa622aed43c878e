"""The graph of a Vision Transformer: numbers and PNG files in, classes and attention out."""

import numpy as np
import pytest
import tensorflow as tf
from eager import eagerly

from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from keras_transformer.tasks.pictures.module import PictureModule
from pipelines.batches import picture_files
from pipelines.whole_files import write_json

CLASSES = ["cat", "dog", "hen"]
PIXELS = np.random.default_rng(6).integers(0, 256, (5, 4, 6, 3), np.uint8)
PICTURES = (PIXELS / 255).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    return VisionTransformer(
        height=4,
        width=6,
        channels=3,
        classes=3,
        patch_size=2,
        num_layers=2,
        d_model=8,
        d_ff=16,
        num_heads=2,
    )


@pytest.fixture(scope="module")
def module(model):
    return PictureModule(model, CLASSES)


@pytest.fixture(autouse=True)
def _eager():
    with eagerly():
        yield


def png(pixels):
    return tf.io.encode_png(pixels).numpy()


def test_classes_are_those_of_the_largest_logits(model, module):
    logits = np.array(model(PICTURES), np.float64)
    found = module.classify(tf.constant(PICTURES))
    told = [CLASSES[number] for number in logits.argmax(axis=-1)]
    assert found["class"].numpy().tolist() == [name.encode() for name in told]
    assert found["classes"].numpy().tolist() == [[name.encode() for name in CLASSES]] * 5
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-5)


def test_a_png_file_is_its_pixels(module):
    files = tf.constant([png(one) for one in PIXELS])
    numbers = module.classify(tf.constant(PICTURES))
    found = module.classify_png(files)
    np.testing.assert_array_equal(found["probabilities"], numbers["probabilities"])
    seen = module.attend_png(files)
    np.testing.assert_array_equal(seen["seen"], PICTURES)
    attention = module.attend(tf.constant(PICTURES))["attention"]
    np.testing.assert_array_equal(seen["attention"], attention)
    # A control: another file.
    other = module.classify_png(files[::-1])
    assert not np.array_equal(other["probabilities"], numbers["probabilities"])


def test_attention_lies_where_the_patches_lie(model, module):
    weights = np.array(model.attention_weights(PICTURES)["encoder"])
    found = module.attend(tf.constant(PICTURES))["attention"].numpy()
    assert found.shape == (5, 2, 2, 2, 3)
    np.testing.assert_array_equal(found[:, :, :, 1, 2], weights[:, :, :, 0, 6])
    own = weights[:, :, :, 0, 0]
    np.testing.assert_allclose(found.sum(axis=(-2, -1)), 1 - own, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 6, 4, 3), (1, 4, 6, 1), (1, 5, 6, 3), (2, 24, 1, 3)])
def test_a_picture_of_another_size_is_told(module, shape):
    said = r"a picture must be 4 x 6 x 3 \(height, width, channels\)\. Resize it\. Received:"
    pictures = np.zeros(shape, np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        module.classify(tf.constant(pictures))
    if shape[-1] == 3:
        file = png(np.zeros(shape[1:], np.uint8))
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            module.classify_png(tf.constant([png(PIXELS[0]), file]))
    classifier = PictureClassifier.of(module)
    with pytest.raises(ValueError, match=said) as told:
        classifier.attention(np.zeros(shape[1:], np.uint8))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("value", [1.01, -0.01, 255.0, np.nan])
def test_values_that_are_no_shares_are_told(module, value):
    pictures = PICTURES.copy()
    pictures[3, 1, 2, 0] = value
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"from 0 to 1\. Divide bytes by 255"):
        module.classify(tf.constant(pictures))


def test_many_pictures_go_through_in_parts(module):
    classifier = PictureClassifier.of(module)
    names, probabilities = classifier.classify(PIXELS, at_once=2)
    whole = module.classify(tf.constant(PICTURES))
    assert [name.encode() for name in names] == whole["class"].numpy().tolist()
    np.testing.assert_allclose(probabilities, whole["probabilities"], rtol=1e-5)
    assert classifier.classify(PIXELS[:0])[1].shape == (0, 3)


def test_golden_examples_fit_all_signatures(module):
    golden = module.golden_inputs(PIXELS[:2].tolist())
    assert len(golden) == 4
    np.testing.assert_array_equal(golden[1]["picture"], PICTURES[1])
    for name, function in module.functions().items():
        [given] = function.input_signature
        function(tf.constant(golden[0][given.name][None], given.dtype))
        assert given.name in golden[0], name


def test_as_many_names_as_classes_are_asked_for(model):
    with pytest.raises(ValueError, match=r"`classes` must be 3 names.*Received: 2\.$"):
        PictureModule(model, ["cat", "dog"])


def test_a_file_is_served_as_it_is_read(module, tmp_path):
    """Training reads what is transparent over white, and JPEG; so does the graph."""
    image = pytest.importorskip("PIL.Image")
    clear = np.concatenate([np.zeros_like(PIXELS[0]), PIXELS[1][..., :1]], axis=-1)
    (tmp_path / "clear.png").write_bytes(png(clear))
    image.fromarray(PIXELS[2]).save(tmp_path / "photo.jpg")
    paths = [tmp_path / "clear.png", tmp_path / "photo.jpg"]
    live = np.stack([picture_files.read(path, 3) for path in paths])
    files = [path.read_bytes() for path in paths]
    seen = module.attend_png(tf.constant(files))["seen"].numpy()
    np.testing.assert_array_equal(np.rint(seen * 255), live)
    assert len(np.unique(live[0])) > 10  # A control: not black all over.


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        (b"\0\0\x33\xe0" * 2, "a picture must be 4 x 6 x 3"),
        (b"\xff" * 8, "a picture must be 4 x 6 x 3"),
    ],
)
def test_a_huge_file_is_told_by_its_header(module, sides, said):
    """Its pixels are damaged, so that decoding would tell something else."""
    content = png(PIXELS[0])
    huge = content[:16] + sides + content[24:40]
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        module.classify_png(tf.constant([content, huge]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="bytes of a PNG or JPEG file"):
        module.classify_png(tf.constant([content, b"GIF89a"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="PNG"):  # A control.
        module.classify_png(tf.constant([content, content[:40]]))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"gates": 3}, "the model was written by another version: this one does not know the"),
        ({}, "holds no checkpoint yet"),  # The control.
    ],
)
def test_a_run_of_another_version_is_told(tmp_path, sizes, said):
    small = VisionHyperparameters(num_layers=1, d_model=4, d_ff=4, num_heads=2).as_dict()
    description = {"task": "image_classification", "hyperparameters": {**small, **sizes}}
    write_json(tmp_path / "model.json", description)
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        PictureClassifier.load(tmp_path)
