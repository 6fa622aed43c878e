"""The task of pictures: flags, descriptions and refusals; and its Vision Transformer's graph."""

import json
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf
from command_flags import NO_FLAGS, new_module, values_of_task
from small_model import eagerly
from written import write_png

from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks import task_class
from keras_transformer.tasks.pictures.module import PictureModule
from keras_transformer.tasks.pictures.task import PictureScorer, scores_of
from keras_transformer.training import checkpoint
from pipelines.batches import picture_files
from pipelines.corpora.images import Split
from pipelines.whole_files import write_json

SMALL = ("--num_layers=1", "--d_model=8", "--d_ff=16", "--num_heads=2", "--patch_size=2")


@pytest.fixture(autouse=True)
def without_graphs():
    with eagerly():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """24 pictures of 4 x 6 pixels, bright and dark ones."""
    folder = tmp_path_factory.mktemp("pictures")
    draw = np.random.default_rng(8)
    for name, least in (("bright", 128), ("dark", 0)):
        (folder / name).mkdir()
        for number in range(12):
            pixels = draw.integers(least, least + 128, (4, 6, 1), np.uint8)
            write_png(folder / name / f"{number}.png", pixels)
    return folder


@pytest.fixture(scope="module")
def make(folder):
    """A function of flags: the task that they make."""
    task = task_class("image_classification")

    def make_task(*arguments):
        flags = (*SMALL, "--pictures=folder", f"--pictures_dir={folder}", *arguments)
        return task(values_of_task(task, *flags))

    return make_task


def test_sizes_are_those_of_the_pictures_and_of_the_flags(make, folder, capsys):
    task = make("--norm=pre", "--shift=1")
    task.introduce()
    printed = capsys.readouterr().out
    assert ": 20 pictures to train, 2 to validate, 2 to test, 2 classes, 2 x 3 patches\n" in printed
    hyperparameters = task.hyperparameters
    assert (hyperparameters.height, hyperparameters.width) == (4, 6)
    assert (hyperparameters.channels, hyperparameters.classes) == (1, 2)
    assert (hyperparameters.norm, hyperparameters.grid, task.width) == ("pre", (2, 3), 8)
    description = json.loads(json.dumps(task.description()))
    assert VisionHyperparameters(**description["hyperparameters"]) == hyperparameters
    assert description["pictures"] == {"name": "folder", "folder": str(folder)}
    assert description["classes"] == {"names": ["bright", "dark"]}
    assert description["training"] == {"shift": 1}
    # A run's folder compares the values of each part.
    assert all(isinstance(part, dict) for part in description.values())
    # Six patches and a class token each.
    assert (len(task.examples("train")), task.examples("train").lengths[0].tolist()) == (20, [7])
    assert len(task.examples("valid")) == 2
    assert task.examples("train").draws is not None
    assert task.examples("valid").draws is None


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--shift=4", r"--shift must be below the 4 pixels of a picture.*=4\. Try --shift=2"),
        ("--patch_size=4", r"`patch_size` must divide height and width.*width=6\. Try 2"),
        ("--num_heads=3", r"`d_model` must be divisible by `num_heads`"),
    ],
)
def test_sizes_that_do_not_fit_the_pictures_are_refused(make, flag, message):
    with pytest.raises(ValueError, match=message):
        make(flag).description()


def test_a_trained_model_is_scored_by_its_module(make, tmp_path):
    task = make()
    module = new_module(task, RunFolder(tmp_path))
    score = task.score(module)
    test = task.pictures.test
    assert score.numbers["pictures"] == 2
    assert score.report[0] == f"{score.numbers['accuracy']:.2%} of 2 pictures are told rightly"
    assert score.report[1].splitlines()[0].split() == ["class", "bright", "dark", "right"]
    np.testing.assert_array_equal(score.samples, test.pixels)
    assert module.facts() == {"classes": {"names": ["bright", "dark"]}}


def test_scores_count_the_answers_of_the_classifier():
    answers = {"class": tf.constant(["b"] * 4), "probabilities": tf.constant([[0.1, 0.9]] * 4)}
    facts = {"classes": {"names": ["a", "b"]}}
    module = types.SimpleNamespace(
        facts=lambda: facts, functions=lambda: {"classify": lambda picture: answers}
    )
    classifier = PictureClassifier.of(module)
    split = Split(np.zeros((4, 2, 2, 1), np.uint8), np.array([0, 1, 1, 1], np.int32))
    expected = {"pictures": 4, "accuracy": 0.75, "confusion": [[0, 1], [0, 3]]}
    assert scores_of(classifier, split) == expected


@pytest.fixture
def described(make, folder, tmp_path):
    """A copy of the folder, and the description of a run on it."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    return copy, json.loads(json.dumps(make(f"--pictures_dir={copy}").description()))


def add_a_picture(folder):
    write_png(folder / "dark" / "12.png", np.zeros((4, 6, 1), np.uint8))


def examined(description):
    return PictureScorer(description, "runs/a", NO_FLAGS)


def test_pictures_of_a_folder_that_has_changed_are_not_scored(described):
    folder, description = described
    assert examined(description)  # A control.
    add_a_picture(folder)
    with pytest.raises(ValueError, match=r"copy must have the files that runs/a was trained with"):
        examined(description)
    del description["files"]  # A run of an earlier version is scored as before.
    assert examined(description)
    (folder / "bright").rename(folder / "light")
    with pytest.raises(ValueError, match=r"on, bright, dark\. Received: dark, light\. Put the sub"):
        examined(description)


def test_a_run_on_a_folder_that_has_changed_does_not_go_on(described, make, tmp_path):
    folder, description = described
    run = RunFolder(tmp_path / "run")
    run.describe(description)
    run.checkpoints.mkdir()
    checkpoint.path_of(run.checkpoints, 1).touch()
    task = make(f"--pictures_dir={folder}")
    run.describe(task.description(), task.fixed)
    add_a_picture(folder)
    task = make(f"--pictures_dir={folder}")
    with pytest.raises(ValueError, match=r"another run: digest was [0-9a-f]{16}, now [0-9a-f]{16}"):
        run.describe(task.description(), task.fixed)
    del description["files"]  # A run of an earlier version resumes.
    run.description.write_text(json.dumps(description))
    run.describe(task.description(), task.fixed)


# The graph of a Vision Transformer: numbers and PNG files in, classes and attention out.
CLASSES = ["cat", "dog", "hen"]
PIXELS = np.random.default_rng(6).integers(0, 256, (5, 4, 6, 3), np.uint8)
PICTURES = (PIXELS / 255).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    sizes = {"height": 4, "width": 6, "channels": 3, "classes": 3, "patch_size": 2}
    sizes |= {"num_layers": 2, "d_model": 8, "d_ff": 16, "num_heads": 2}
    return VisionTransformer(**sizes)


@pytest.fixture(scope="module")
def module(model):
    return PictureModule(model, CLASSES)


def png(pixels):
    return tf.io.encode_png(pixels).numpy()


def test_classes_are_those_of_the_largest_logits(model, module):
    logits = np.array(model(PICTURES), np.float64)
    answers = module.classify(tf.constant(PICTURES))
    names = [CLASSES[number] for number in logits.argmax(axis=-1)]
    assert answers["class"].numpy().tolist() == [name.encode() for name in names]
    assert answers["classes"].numpy().tolist() == [[name.encode() for name in CLASSES]] * 5
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(answers["probabilities"], expected, rtol=1e-5)


def test_a_png_file_is_its_pixels(module):
    files = tf.constant([png(pixels) for pixels in PIXELS])
    numbers = module.classify(tf.constant(PICTURES))
    answers = module.classify_png(files)
    np.testing.assert_array_equal(answers["probabilities"], numbers["probabilities"])
    attended = module.attend_png(files)
    np.testing.assert_array_equal(attended["seen"], PICTURES)
    attention = module.attend(tf.constant(PICTURES))["attention"]
    np.testing.assert_array_equal(attended["attention"], attention)
    # A control: another file.
    reversed_answers = module.classify_png(files[::-1])
    assert not np.array_equal(reversed_answers["probabilities"], numbers["probabilities"])


def test_attention_lies_where_the_patches_lie(model, module):
    weights = np.array(model.attention_weights(PICTURES)["encoder"])
    attention = module.attend(tf.constant(PICTURES))["attention"].numpy()
    assert attention.shape == (5, 2, 2, 2, 3)
    np.testing.assert_array_equal(attention[:, :, :, 1, 2], weights[:, :, :, 0, 6])
    own = weights[:, :, :, 0, 0]
    np.testing.assert_allclose(attention.sum(axis=(-2, -1)), 1 - own, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 6, 4, 3), (1, 4, 6, 1), (1, 5, 6, 3), (2, 24, 1, 3)])
def test_a_picture_of_another_size_is_refused(module, shape):
    message = r"a picture must be 4 x 6 x 3 \(height, width, channels\)\. Resize it\. Received:"
    pictures = np.zeros(shape, np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        module.classify(tf.constant(pictures))
    if shape[-1] == 3:
        file = png(np.zeros(shape[1:], np.uint8))
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            module.classify_png(tf.constant([png(PIXELS[0]), file]))
    classifier = PictureClassifier.of(module)
    with pytest.raises(ValueError, match=message) as raised:
        classifier.attention(np.zeros(shape[1:], np.uint8))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", [1.01, -0.01, 255.0, np.nan])
def test_values_outside_0_to_1_are_refused(module, value):
    pictures = PICTURES.copy()
    pictures[3, 1, 2, 0] = value
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"from 0 to 1\. Divide bytes by 255"):
        module.classify(tf.constant(pictures))


def test_many_pictures_go_through_in_parts(module):
    classifier = PictureClassifier.of(module)
    counts = []
    classify = classifier._functions["classify"]
    classifier._functions["classify"] = lambda picture: (
        counts.append(len(picture)) or classify(picture=picture)
    )
    names, probabilities = classifier.classify(PIXELS, most=2 * 4 * 6)
    assert counts == [2, 2, 1]
    whole = module.classify(tf.constant(PICTURES))
    assert [name.encode() for name in names] == whole["class"].numpy().tolist()
    np.testing.assert_allclose(probabilities, whole["probabilities"], rtol=1e-5)
    assert classifier.classify(PIXELS[:0])[1].shape == (0, 3)
    assert classifier.classify(PIXELS, most=1)[0] == names  # A picture may be larger than that.


def test_golden_examples_fit_all_signatures(module):
    golden = module.golden_inputs(PIXELS[:2].tolist())
    assert len(golden) == 4
    np.testing.assert_array_equal(golden[1]["picture"], PICTURES[1])
    for name, function in module.functions().items():
        [spec] = function.input_signature
        function(tf.constant(golden[0][spec.name][None], spec.dtype))
        assert spec.name in golden[0], name


def test_a_number_of_names_other_than_of_classes_is_refused(model):
    with pytest.raises(ValueError, match=r"`classes` must be 3 names.*Received: 2\.$"):
        PictureModule(model, ["cat", "dog"])


def test_a_file_is_served_as_training_reads_it(module, tmp_path):
    """Training reads JPEG, and puts transparent pixels over white; so does the graph."""
    image = pytest.importorskip("PIL.Image")
    clear = np.concatenate([np.zeros_like(PIXELS[0]), PIXELS[1][..., :1]], axis=-1)
    (tmp_path / "clear.png").write_bytes(png(clear))
    image.fromarray(PIXELS[2]).save(tmp_path / "photo.jpg")
    paths = [tmp_path / "clear.png", tmp_path / "photo.jpg"]
    live = np.stack([picture_files.read(path, 3) for path in paths])
    files = [path.read_bytes() for path in paths]
    pixels = module.attend_png(tf.constant(files))["seen"].numpy()
    np.testing.assert_array_equal(np.rint(pixels * 255), live)
    assert len(np.unique(live[0])) > 10  # A control: not black all over.


@pytest.mark.parametrize("sides", [b"\0\0\x33\xe0" * 2, b"\xff" * 8])
def test_a_huge_file_is_refused_by_its_header(module, sides):
    """Its pixels are damaged, so that decoding would give another error."""
    content = png(PIXELS[0])
    huge = content[:16] + sides + content[24:40]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a picture must be 4 x 6 x 3"):
        module.classify_png(tf.constant([content, huge]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="bytes of a PNG or JPEG file"):
        module.classify_png(tf.constant([content, b"GIF89a"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="PNG"):  # A control.
        module.classify_png(tf.constant([content, content[:40]]))


SIZES = VisionHyperparameters(num_layers=1, d_model=4, d_ff=4, num_heads=2).as_dict()


@pytest.mark.parametrize(
    ("task", "sizes", "message"),
    [
        ("parsing", {}, r"must be a model of the task image_classification\. .*parsing\. Try `tr"),
        ("image_classification", {"gates": 3}, "the model was written by another version: this o"),
        ("image_classification", {}, "holds no checkpoint"),  # The control.
    ],
)
def test_a_run_of_another_task_or_version_is_refused(tmp_path, task, sizes, message):
    write_json(tmp_path / "model.json", {"task": task, "hyperparameters": SIZES | sizes})
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        PictureClassifier.load(tmp_path)
