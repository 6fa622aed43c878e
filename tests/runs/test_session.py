"""A SavedModel in memory gives what TensorFlow's own reload gives, and leaves nothing behind."""

import weakref

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("fastapi")

from keras_transformer.server.errors import RequestError
from keras_transformer.runs.session import SavedModel

TEXT = np.array([b"a b", b"", b"c"], dtype=object)


@pytest.fixture(scope="module")
def model(exported):
    model = SavedModel(exported / "m" / "1")
    yield model
    model.close()


@pytest.mark.parametrize("name", ["serving_default", "nbest", "translate", "sample", "score", "align", "raw", "width"])
def test_a_signature_gives_what_tensorflow_s_reload_gives(model, exported, name):
    reloaded = tf.saved_model.load(str(exported / "m" / "1")).signatures[name]
    inputs = dict.fromkeys(model.signatures[name].required, TEXT) | model.signatures[name].defaults
    found, expected = model.run(name, inputs), reloaded(**{one: tf.constant(value) for one, value in inputs.items()})
    assert found.keys() == expected.keys()
    for one in expected:
        np.testing.assert_array_equal(found[one], expected[one].numpy())


def test_defaults_are_read_from_the_folder(model):
    defaults = model.signatures["translate"].defaults
    assert {name: value.tolist() for name, value in defaults.items() if name != "length_penalty"} == {
        "beam_size": [4],
        "max_length": [50],
        "num_hypotheses": [1],
    }
    assert model.signatures["translate"].required == ["text"]
    assert model.signatures["score"].required == ["reference", "text"]


def test_what_needs_no_input_is_no_signature(model):
    assert "__saved_model_init_op" in model.definitions
    assert "__saved_model_init_op" not in model.signatures


def test_a_dropped_model_leaves_nothing(exported):
    model = SavedModel(exported / "m" / "1")
    model.warm_up()
    graph = weakref.ref(model._session.graph)
    assert graph() is not None
    model.close()
    assert graph() is None


def test_inputs_that_do_not_fit_are_refused_in_a_line(model):
    inputs = {"text": TEXT, **model.signatures["translate"].defaults, "beam_size": np.array([1, 2], np.int32)}
    with pytest.raises(RequestError, match=r"^Incompatible shapes: \[2\] vs. \[3\]$") as refused:
        model.run("translate", inputs)
    assert refused.value.status == 400


@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises((OSError, ValueError, RuntimeError)):
        SavedModel(tmp_path)
