"""A SavedModel in memory gives what TensorFlow's own reload gives, and leaves nothing behind."""

import weakref

import numpy as np
import pytest
import tensorflow as tf
from string_model import StringModel

from keras_transformer.saved_models.session import SavedModel

TEXT = np.array([b"a b", b"", b"c"], dtype=object)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a SavedModel."""
    folder = tmp_path_factory.mktemp("exported")
    StringModel("").write(folder)
    return folder


@pytest.fixture(scope="module")
def model(exported):
    model = SavedModel(exported)
    yield model
    model.close()


@pytest.mark.parametrize(
    "name", ["serving_default", "nbest", "translate", "sample", "score", "align", "raw", "width"]
)
def test_a_signature_gives_what_tensorflow_s_reload_gives(model, exported, name):
    reloaded = tf.saved_model.load(str(exported)).signatures[name]
    inputs = dict.fromkeys(model.signatures[name].required, TEXT) | model.signatures[name].defaults
    found, expected = (
        model.run(name, inputs),
        reloaded(**{one: tf.constant(value) for one, value in inputs.items()}),
    )
    assert found.keys() == expected.keys()
    for one in expected:
        np.testing.assert_array_equal(found[one], expected[one].numpy())


def test_defaults_are_read_from_the_folder(model):
    defaults = model.signatures["translate"].defaults
    assert {
        name: value.tolist() for name, value in defaults.items() if name != "length_penalty"
    } == {
        "beam_size": [4],
        "max_length": [50],
        "num_hypotheses": [1],
    }
    assert model.signatures["translate"].required == ["text"]
    assert model.signatures["score"].required == ["reference", "text"]


def test_what_needs_no_input_is_no_signature(model):
    assert "__saved_model_init_op" in model.definitions
    assert "__saved_model_init_op" not in model.signatures


def test_what_is_asked_for_alone_is_loaded(model, exported):
    only = SavedModel(exported, ("score", "absent"))
    assert list(only.signatures) == ["score"]
    assert only.definitions.keys() == model.definitions.keys()
    inputs = {"text": TEXT, "reference": TEXT}
    np.testing.assert_equal(only.run("score", inputs), model.run("score", inputs))

    def nodes(model):
        return len(model._session.graph.get_operations())

    assert nodes(only) < nodes(model) / 2
    only.close()


class Lookup(tf.Module):
    """The length of a text, by a table that an asset fills, times a variable."""

    def __init__(self, path):
        super().__init__()
        lines = tf.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter=" ")
        self.table = tf.lookup.StaticHashTable(lines, -1)
        self.factor = tf.Variable(3, dtype=tf.int64)
        text = tf.TensorSpec([None], tf.string, name="text")
        self.look_up = tf.function(
            lambda text: {"number": self.table.lookup(text) * self.factor}, input_signature=[text]
        )


def test_variables_and_tables_are_filled(tmp_path):
    (tmp_path / "table.txt").write_text("a 7\nb 8\n")
    module = Lookup(tmp_path / "table.txt")
    folder = tmp_path / "exported"
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.look_up})
    (tmp_path / "table.txt").unlink()
    model = SavedModel(folder)
    found = model.run("serving_default", {"text": np.array([b"b", b"none", b"a"], object)})
    assert found["number"].tolist() == [24, -3, 21]
    model.close()


def test_a_dropped_model_leaves_nothing(exported):
    model = SavedModel(exported)
    model.warm_up()
    graph = weakref.ref(model._session.graph)
    assert graph() is not None
    model.close()
    assert graph() is None


def test_inputs_that_do_not_fit_are_refused(model):
    inputs = {
        "text": TEXT,
        **model.signatures["translate"].defaults,
        "beam_size": np.array([1, 2], np.int32),
    }
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\]"
    ):
        model.run("translate", inputs)


@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises((OSError, ValueError, RuntimeError)):
        SavedModel(tmp_path)
