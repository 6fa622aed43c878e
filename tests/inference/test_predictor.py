"""For each line in, a SavedModel's output: what its signature gives for the line alone."""

import io
import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from string_model import StringModel, StringReader
from written import write_png

from keras_transformer.inference.predictor import Predictor
from keras_transformer.inference.text_reader import TextReader

TEXTS = ["a", "", "ccc dd", "漢", *map(str, range(150))]
SIZE = (2, 3, 1)


class Eyes(tf.Module):
    """Tells bright from dark pictures of one size, with the outputs of our picture classifiers."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="png")])
    def classify_png(self, png):
        def light(file):
            pixels = tf.io.decode_png(file, 1)
            tf.debugging.assert_equal(tf.shape(pixels), SIZE, "a picture must be 2 x 3 x 1.")
            return tf.reduce_mean(tf.cast(pixels, tf.float32)) / 255

        lights = tf.map_fn(light, png, fn_output_signature=tf.float32)
        return {
            "class": tf.where(lights > 0.5, "bright", "dark"),
            "classes": tf.broadcast_to(tf.constant(["bright", "dark"]), [tf.size(png), 2]),
            "probabilities": tf.stack([lights, 1 - lights], axis=1),
        }

    @tf.function(input_signature=[tf.TensorSpec([None, *SIZE], name="picture")])
    def serving_default(self, picture):
        return {"class": tf.fill(tf.shape(picture)[:1], "asked for pixels")}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a SavedModel by each name."""
    folder = tmp_path_factory.mktemp("models")
    StringModel("!").write(folder / "upper" / "1")
    StringReader().write(folder / "reader" / "1")
    eyes = Eyes()
    signatures = {"serving_default": eyes.serving_default, "classify_png": eyes.classify_png}
    tf.saved_model.save(eyes, str(folder / "eyes" / "1"), signatures=signatures)
    return folder


@pytest.fixture
def pictures(tmp_path):
    """Paths of a bright, a dark and a too large picture, of a text, and of no file."""
    for name, value, size in (("bright", 204, SIZE), ("dark", 51, SIZE), ("large", 0, (3, 3, 1))):
        write_png(tmp_path / f"{name}.png", np.full(size, value, np.uint8))
    (tmp_path / "text.png").write_text("no picture")
    names = ("bright", "dark", "large", "text", "none")
    return {name: str(tmp_path / f"{name}.png") for name in names}


def recorded_calls(predictor):
    """A list to which each further call of the predictor's signature adds its inputs' lengths."""
    calls = []
    function = predictor._function

    def record(**inputs):
        calls.append([len(text) for text in next(iter(inputs.values()))])
        return function(**inputs)

    predictor._function = record
    return calls


def test_each_line_gives_a_line_and_none_is_padded_to_a_long_one(models):
    predictor = Predictor.load(models / "upper")
    calls = recorded_calls(predictor)
    texts = [*TEXTS[:9], "a b" * 2000, *TEXTS[9:], "c" * 9000]
    assert predictor.lines(texts) == [f"{text.upper()}!" for text in texts]
    assert [lengths for lengths in calls if max(lengths) > 16] == [[9000], [6000]]
    assert sum(map(len, calls)) == len(texts)
    assert Predictor.load(models / "upper" / "1").lines([]) == []
    # As from a `Translator`.
    assert predictor.lines(["\udcff"]) == ["?!"]


def test_objects_have_the_input_and_every_output(models):
    objects = list(Predictor.load(models / "upper", "raw").objects(TEXTS))
    expected = [{"text": text, "text_bytes": text, "length": len(text.encode())} for text in TEXTS]
    assert objects == expected


def test_no_text_is_padded_for_another(models):
    predictor = Predictor.load(models / "upper", "width")
    expected = [["a", "b", "c"], [], ["d"]]
    assert [row["characters"] for row in predictor.objects(["abc", "", "d"])] == expected


def test_numbers_have_the_digits_of_a_float32(models):
    [guess] = Predictor.load(models / "reader", "fill_mask").objects(["a <mask>"])
    assert guess == {
        "text": "a <mask>",
        "filled": "a dog",
        "pieces": [["dog", "cat"]],
        "probabilities": [[0.75, 0.25]],
    }
    [embedding] = Predictor.load(models / "reader", "embed").objects(["ab"])
    assert embedding["vector"] == pytest.approx([np.cos(0.1), np.sin(0.1)], abs=1e-7)
    assert len(json.dumps(embedding["vector"][0])) <= len("0.12345678")


def test_a_line_of_pictures_names_a_file(models, pictures):
    predictor = Predictor.load(models / "eyes")
    names = [pictures["dark"], pictures["bright"]]
    calls = recorded_calls(predictor)
    assert predictor.lines(names * 50) == ["dark", "bright"] * 50
    assert max(map(len, calls)) <= 64
    first, _ = predictor.objects(names)
    assert first == {
        "png": pictures["dark"],
        "class": "dark",
        "classes": ["bright", "dark"],
        "probabilities": [0.2, 0.8],
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("large", "a picture must be 2 x 3 x 1"), ("text", "Unknown image file format")],
)
def test_the_picture_that_is_refused_is_named(models, pictures, wrong, message):
    predictor = Predictor.load(models / "eyes")
    with pytest.raises(ValueError, match=re.escape(pictures[wrong])) as caught:
        predictor.lines([pictures["dark"], pictures[wrong], pictures["bright"]])
    assert str(caught.value).startswith(f"{pictures[wrong]!r}: {message}")
    with pytest.raises(FileNotFoundError, match=r"none\.png"):
        predictor.lines([pictures["none"]])
    with pytest.raises(ValueError, match="every line must name a PNG or JPEG file"):
        predictor.lines([pictures["dark"], ""])


@pytest.mark.parametrize(
    ("name", "signature", "message"),
    [
        ("upper", "none", r"that takes one string: .*raw, sample.*width\. Received: 'none'"),
        ("upper", "score", r"must be one of .* Received: 'score'"),
        ("eyes", "serving_default", r"takes one string: classify_png\. Received"),
    ],
)
def test_a_signature_that_takes_something_else_is_refused(models, name, signature, message):
    with pytest.raises(ValueError, match=message):
        Predictor.load(models / name, signature)


def test_an_output_that_is_no_line_needs_json(models):
    with pytest.raises(ValueError, match=r"^embed gives vector, .* Add --json\.$"):
        Predictor.load(models / "reader", "embed").lines(["a"])


def test_a_text_without_a_mask_is_refused_where_masks_are_guessed(models):
    filling = Predictor.load(models / "reader")
    assert filling.lines(["a <mask>"]) == ["a dog"]
    for ask in (filling.lines, lambda texts: list(filling.objects(texts))):
        with pytest.raises(ValueError, match=r"must have a mask, .* Received: text 2, 'a cat'"):
            ask(["a <mask>", "a cat"])
    assert list(Predictor.load(models / "reader", "embed").objects(["a cat"]))


def test_vectors_of_no_texts_are_refused(models):
    reader = TextReader.load(models / "reader")
    for ask in (lambda: reader.vectors([]), lambda: reader.search(["a cat"], [], 1)):
        with pytest.raises(ValueError, match=r"^`texts` must have a text\. Received: none\.$"):
            ask()


def test_the_mask_is_that_of_the_model(models, tmp_path):
    """The mask of another vocabulary is plain text, for which nothing is guessed."""
    shutil.copytree(models / "reader" / "1", tmp_path / "1")
    (tmp_path / "1" / "model.json").write_text('{"mask": "[MASK]"}')
    filling = Predictor.load(tmp_path)
    # This reader's graph hides words by <mask>, so [MASK] is accepted and stays.
    assert filling.lines(["a [MASK]"]) == ["a [MASK]"]
    reader = TextReader.load(tmp_path)
    for ask in (filling.lines, reader.filled, reader.guesses):
        message = r"must have a mask, \[MASK\], in .*text 1, 'a <mask>'"
        with pytest.raises(ValueError, match=message):
            ask(["a <mask>"])


def test_a_folder_without_a_saved_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no trained model: .* Name a folder that"):
        Predictor.load(tmp_path)
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(ValueError, match=r"is no SavedModel\. Export the run: "):
        Predictor.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no model at"):
        Predictor.load(tmp_path / "nowhere")


def test_the_command_writes_what_the_predictor_gives(models, fresh_shell):
    def printed(*arguments, stdin=b"a\nbb\n"):
        answer = fresh_shell("predict", f"--model={models}/upper", *arguments, stdin=stdin)
        assert (answer.returncode, answer.stderr) == (0, b"")
        return answer.stdout.decode()

    assert printed() == printed("--stream") == "A!\nBB!\n"
    assert list(map(json.loads, io.StringIO(printed("--json", "--signature=raw")))) == [
        {"text": "a", "text_bytes": "a", "length": 1},
        {"text": "bb", "text_bytes": "bb", "length": 2},
    ]
    answer = fresh_shell("predict", f"--model={models}/upper", "--stream", "--output=x")
    assert answer.returncode == 1
    assert answer.stderr.startswith(b"error: --stream answers lines of standard input")
    answer = fresh_shell("predict", stdin=b"a\n")
    assert answer.stderr.startswith(b"error: --model is missing")
