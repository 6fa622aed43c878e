"""The task of pictures: what it reads of the flags, what it says of a run, and what it refuses."""

import json
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf
from eager import eagerly
from tasks.new_models import new_module

from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.models import VisionHyperparameters
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks import task_class
from keras_transformer.tasks.pictures.task import PictureScorer, scores_of
from keras_transformer.training import checkpoint
from pipelines.batches import picture_files
from pipelines.corpora.images import Split

SMALL = ("--num_layers=1", "--d_model=8", "--d_ff=16", "--num_heads=2", "--patch_size=2")
NO_FLAGS = dict.fromkeys(
    ("metrics", "confidence", "baseline_file", "source_file", "reference_file", "evalb_parameters")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """24 pictures of 4 x 6 pixels, bright and dark ones."""
    folder = tmp_path_factory.mktemp("pictures")
    draw = np.random.default_rng(8)
    for name, least in (("bright", 128), ("dark", 0)):
        (folder / name).mkdir()
        for number in range(12):
            pixels = draw.integers(least, least + 128, (4, 6, 1), np.uint8)
            picture_files.write(folder / name / f"{number}.png", pixels)
    return folder


@pytest.fixture(scope="module")
def make(values_of, folder):
    """A function of flags: the task that they say."""
    task = task_class("image_classification")

    def made(*arguments):
        flags = (*SMALL, "--pictures=folder", f"--pictures_dir={folder}", *arguments)
        return task(values_of(task, *flags))

    return made


def test_sizes_are_those_of_the_pictures_and_of_the_flags(make, folder):
    task = make("--norm=pre", "--shift=1")
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


def test_it_says_what_it_learns(make, capsys):
    make().introduce()
    told = capsys.readouterr().out
    assert ": 20 pictures to train, 2 to validate, 2 to test, 2 classes, 2 x 3 patches\n" in told


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        (
            "--shift=4",
            r"--shift must be below the 4 pixels of a picture.*--shift=4\. Try --shift=2",
        ),
        ("--patch_size=4", r"`patch_size` must divide height and width.*width=6\. Try 2"),
        ("--num_heads=3", r"`d_model` must be divisible by `num_heads`"),
    ],
)
def test_what_it_cannot_learn_with_is_told(make, flag, said):
    with pytest.raises(ValueError, match=said):
        make(flag).description()


def test_a_trained_model_is_scored_by_its_module(make, tmp_path):
    task = make()
    with eagerly():
        module = new_module(task, RunFolder(tmp_path))
        found = task.score(module)
    test = task.pictures.test
    assert found.numbers["pictures"] == 2
    assert found.report[0] == f"{found.numbers['accuracy']:.2%} of 2 pictures are told rightly"
    assert found.report[1].splitlines()[0].split() == ["class", "bright", "dark", "right"]
    np.testing.assert_array_equal(found.samples, test.pixels)
    assert module.facts() == {"classes": {"names": ["bright", "dark"]}}


def test_scores_count_what_is_told():
    told = {"class": tf.constant(["b"] * 4), "probabilities": tf.constant([[0.1, 0.9]] * 4)}
    facts = {"classes": {"names": ["a", "b"]}}
    module = types.SimpleNamespace(
        facts=lambda: facts, functions=lambda: {"classify": lambda picture: told}
    )
    classifier = PictureClassifier.of(module)
    split = Split(np.zeros((4, 2, 2, 1), np.uint8), np.array([0, 1, 1, 1], np.int32))
    expected = {"pictures": 4, "accuracy": 0.75, "confusion": [[0, 1], [0, 3]]}
    assert scores_of(classifier, split) == expected


def test_questions_about_text_are_refused():
    assert task_class("image_classification").scorer is PictureScorer
    with pytest.raises(ValueError, match=r"--confidence is for text, and runs/a gives pictures"):
        PictureScorer({}, "runs/a", {**NO_FLAGS, "confidence": True})
    with pytest.raises(ValueError, match=r"runs/a does not say what pictures it was trained on"):
        PictureScorer({}, "runs/a", NO_FLAGS)


@pytest.fixture
def described(make, folder, tmp_path):
    """A copy of the folder, and what a run on it says of itself."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    return copy, json.loads(json.dumps(make(f"--pictures_dir={copy}").description()))


def add_a_picture(folder):
    picture_files.write(folder / "dark" / "12.png", np.zeros((4, 6, 1), np.uint8))


def examined(description):
    return PictureScorer(description, "runs/a", {**NO_FLAGS, "split": "test"})


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
    del description["files"]  # A run of an earlier version goes on.
    run.description.write_text(json.dumps(description))
    run.describe(task.description(), task.fixed)


def test_a_model_of_text_is_refused(tmp_path):
    (tmp_path / "model.json").write_text('{"task": "parsing"}')
    with pytest.raises(
        ValueError, match=r"must be a model of the task image_classification.*parsing\.$"
    ):
        PictureClassifier.load(tmp_path)


def test_a_run_of_pictures_has_one_precision():
    scorer = PictureScorer.__new__(PictureScorer)
    with pytest.raises(ValueError, match=r"^--precision=bfloat16: models of pictures compute"):
        scorer.examine({"precision": "bfloat16"}, 1)
