"""A Vision Transformer trained by the command on digits: killed, exported, evaluated, drawn."""

import json

import numpy as np
import pytest
import tensorflow as tf
from written import write_png

from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.saved_models.session import SavedModel
from pipelines.corpora import images

pytest.importorskip("sklearn", reason="install the extra [vision]")
pytestmark = pytest.mark.slow
RUN = "runs/image_classification_digits"
SAVED_MODEL = "saved_models/image_classification_digits"
TRAIN = [
    *("train", "--flagfile=vit.flags", "--num_layers=1", "--d_model=32", "--d_ff=128"),
    *("--warmup_steps=20", "--learning_rate=0.01", "--mixed_precision=float32"),
]
COMMAND = ("visualize", "--picture=patches")


@pytest.fixture(scope="module")
def trained(trained_once):
    """A `Shell` in the folder of a model that has learned digits in part."""
    return trained_once("vision", [*TRAIN, "--shift=0", "--max_steps=400"])


@pytest.fixture(scope="module")
def digits():
    return images.load("digits")


def test_it_learns_and_evaluate_gives_its_accuracy_and_confusion(trained):
    evaluation = json.loads((trained.folder / RUN / "evaluation.json").read_text())
    assert evaluation["accuracy"] > 0.6  # of ten classes
    output = trained.trained.stdout
    assert f"{evaluation['accuracy']:.2%} of 360 pictures are told rightly".encode() in output
    run, saved, valid = trained.all(
        [
            ("evaluate", f"--model={RUN}", "--json"),
            ("evaluate", f"--model={SAVED_MODEL}"),
            ("evaluate", f"--model={RUN}", "--split=valid", "--json"),
        ]
    )
    assert run.returncode == 0, run.stderr.decode()
    scores = json.loads(run.stdout)
    assert scores["accuracy"] == evaluation["accuracy"]
    assert np.sum(scores["confusion"]) == scores["pictures"] == 360
    assert f"360 pictures, accuracy {evaluation['accuracy']:.2%}".encode() in saved.stdout
    assert json.loads(valid.stdout)["pictures"] == 180


def test_the_saved_model_classifies_like_the_live_model(trained, digits):
    """200 pictures, as numbers and as PNG files; and through the server's session."""
    pixels = digits.test.pixels[:200]
    names, probabilities = PictureClassifier.load(trained.folder / RUN).classify(pixels)
    exported = PictureClassifier.load(trained.folder / SAVED_MODEL)
    assert exported.classify(pixels)[0] == names
    np.testing.assert_allclose(exported.classify(pixels)[1], probabilities, rtol=1e-4, atol=1e-6)
    assert len(set(names)) > 5
    served = SavedModel(trained.folder / SAVED_MODEL / "1")
    try:
        files = np.array([tf.io.encode_png(picture).numpy() for picture in pixels], dtype=object)
        outputs = served.run("classify_png", {"png": files})
        assert [name.decode() for name in outputs["class"]] == names
        np.testing.assert_allclose(outputs["probabilities"], probabilities, rtol=1e-4, atol=1e-6)
        message = r"a picture must be 8 x 8 x 1 \(height, width, channels\)"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            served.run("classify", {"picture": np.zeros((1, 9, 8, 1), np.float32)})
    finally:
        served.close()


def test_its_attention_to_patches_is_drawn(trained, digits, tmp_path):
    pytest.importorskip("matplotlib")
    trained = trained.copy(tmp_path / "vision")
    write_png(trained.folder / "digit.png", digits.test.pixels[3])
    of_file, of_test = trained.all(
        [
            (*COMMAND, f"--model={RUN}", "--png=digit.png", "--output=a.svg"),
            (*COMMAND, f"--model={SAVED_MODEL}", "--output=b.png"),
        ]
    )
    assert of_file.returncode == of_test.returncode == 0, of_file.stderr + of_test.stderr
    classifier = PictureClassifier.load(trained.folder / RUN)
    [name], probabilities = classifier.classify(digits.test.pixels[3:4])
    assert of_file.stdout.decode() == f"{name}: {probabilities.max():.1%}\n"
    # The picture alone, and once for each of four heads.
    assert (trained.folder / "a.svg").read_text().count("<image") == 5
    assert (trained.folder / "b.png").read_bytes().startswith(b"\x89PNG")


def test_after_a_kill_it_resumes_bit_for_bit(trained_once, kill_and_resume):
    command = [*TRAIN, "--max_steps=60", "--keep_checkpoints=9", "--norelease"]
    kill_and_resume(command, trained_once("short_vision", command), RUN)


def test_a_vit_of_transformers_becomes_a_run_and_a_saved_model(fresh_shell):
    from theirs import torch, transformers

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    config = transformers.ViTConfig(
        image_size=6, patch_size=3, num_attention_heads=2, id2label={0: "cat", 1: "dog"}, **sizes
    )
    torch.manual_seed(4)
    theirs = transformers.ViTForImageClassification(config).eval()
    theirs.save_pretrained(fresh_shell.folder / "vit")
    pixels = np.random.default_rng(9).integers(0, 256, (5, 6, 6, 3), np.uint8)
    scaled = torch.tensor(2 * (pixels / 255).astype(np.float32) - 1).permute(0, 3, 1, 2)
    with torch.no_grad():
        expected = torch.softmax(theirs(pixel_values=scaled).logits, dim=-1).numpy()
    command = ("import_model", "--from=vit", "--model_dir=runs/pets")
    process = fresh_shell.run(*command)
    lines = process.stdout.decode().splitlines()
    assert lines[0] == "vit: image_classification, 5,058 weights read"
    assert lines[-1].startswith("image_classification in runs/pets, exported to ")
    for model in ("runs/pets", "saved_models/pets"):
        classifier = PictureClassifier.load(fresh_shell.folder / model)
        assert classifier.classes == ["cat", "dog"]
        probabilities = classifier.classify(pixels)[1]
        np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)
    again = fresh_shell(*command)
    assert again.stderr.startswith(b"error: runs/pets exists. Name another --model_dir")
