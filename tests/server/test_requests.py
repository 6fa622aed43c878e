"""Arrays from JSON and to JSON, and how a request's arrays become rows and options."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

pytest.importorskip("fastapi")

from keras_transformer.saved_models.signature import Signature, TensorSpec
from keras_transformer.server import binary_tensors, from_json, to_json
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import joined, parted, rows

SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=4, max_side=3)
TEXT = TensorSpec("text:0", np.dtype(object), (None,))
SEARCH = Signature(
    {"text": TEXT, "beam_size": TensorSpec("beam_size:0", np.dtype(np.int32), (None,))},
    {"out": TEXT},
    {"beam_size": np.array([4], np.int32)},
)


LIMITS = ServeOptions(max_batch_size=4, max_text_bytes=5)


def through_json(array, dtype):
    return from_json.array(json.loads(b"".join(to_json.values(array))), np.dtype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
@settings(max_examples=40)
@given(data=st.data())
def test_numbers_come_back_from_json_to_the_last_bit(dtype, data):
    array = data.draw(arrays_of.arrays(dtype, SHAPES))
    restored = through_json(array, dtype)
    assert restored.dtype == array.dtype
    np.testing.assert_array_equal(restored, array)


def test_a_number_beyond_its_type_is_infinite_and_a_complex_one_is_refused():
    expected = [np.inf, -np.inf, np.inf]
    assert from_json.array([1e300, -1e39, 10**400], np.float32).tolist() == expected
    assert binary_tensors.datatype(np.dtype(np.complex64)) == "COMPLEX64"
    with pytest.raises(RequestError, match="JSON has no complex64: let the model give floats"):
        through_json(np.zeros(2, np.complex64), np.float32)


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_an_answer_in_pieces_is_the_answer(monkeypatch, piece):
    monkeypatch.setattr(to_json, "PIECE", piece)
    numbers = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7
    numbers[1, 1, 1:] = [np.nan, -np.inf, np.inf]
    outputs = {"text": np.array([b"a", b"\xff"], dtype=object), "numbers": numbers}
    for in_rows in (True, False):
        answer = json.loads(b"".join(to_json.response(outputs, in_rows)))
        predictions = answer.get("predictions", [])
        restored = [row["numbers"] for row in predictions] or answer["outputs"]["numbers"]
        np.testing.assert_array_equal(np.array(restored, np.float32), numbers)
    assert answer["outputs"]["text"] == ["a", "\ufffd"]


def test_an_output_that_stands_alone_is_base64_by_its_name():
    bytes_alone = {"picture_bytes": np.array([b"\xff"], dtype=object)}
    [value] = json.loads(b"".join(to_json.response(bytes_alone, True)))["predictions"]
    assert base64.b64decode(value["b64"]) == b"\xff"
    text_alone = {"text": bytes_alone["picture_bytes"]}  # control
    assert json.loads(b"".join(to_json.response(text_alone, True)))["predictions"] == ["\ufffd"]


def test_base64_may_be_broken_into_lines():
    """TF Serving allows it."""
    lines = base64.encodebytes(bytes(100)).decode()
    assert from_json.array({"b64": lines}, object).item() == bytes(100)
    assert lines.count("\n") == 2  # control


@given(
    arrays_of.arrays(object, SHAPES, elements=st.text(st.characters(codec="utf-8")).map(str.encode))
)
def test_strings_come_back_from_json(array):
    restored = through_json(array, object)
    assert restored.shape == array.shape
    assert restored.tolist() == array.tolist()


@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (True, np.int32, "JSON Value: true Type: Bool is not of expected type: int32"),
        (1.0, np.int32, "JSON Value: 1.0 Type: Number is not of expected type: int32"),
        (2**31, np.int32, "2147483648 Type: Number is not of expected type: int32"),
        (True, np.float32, "is not of expected type: float32"),
        (None, object, "JSON Value: null Type: Null is not of expected type: string"),
        ({"b64": "%"}, object, "Unable to base64 decode"),
        ({"b64": "YQ", "c": 1}, object, "Type: Object is not of expected type: string"),
        ("\ud800", object, "The surrogate pair in string is invalid."),
        ([1, [2]], np.int32, "Encountered list at unexpected level: 1 expected < 1"),
        ([[1], 2], np.int32, "JSON Value: 2 found at incorrect level: 2 in the JSON DOM."),
        ([[1], [2, 3]], np.int32, "list at unexpected size: 2 at level: 1 expected size: 1"),
        ([[[[[[[[[1]]]]]]]]], np.int32, "Encountered more than 8 lists in one another"),
    ],
)
def test_a_value_of_another_type_or_shape_is_refused(value, dtype, words):
    with pytest.raises(RequestError) as refused:
        from_json.array(value, dtype)
    assert words in refused.value.message
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[" * 100000, b"9" * 5000, b"[]", b'{"signature_name": 1}', b'{"a": 1} x'],
)
def test_a_body_that_is_no_object_of_json_is_refused(body):
    with pytest.raises(RequestError) as refused:
        from_json.parse(body)
    assert refused.value.status == 400


def test_lists_too_deep_to_be_written_again_are_refused():
    for depth in range(900, 1000):
        with pytest.raises(RequestError):
            from_json.parse(b"[" * depth + b"]" * depth)


def read(**document):
    return rows(from_json.arrays(document, SEARCH, LIMITS), SEARCH, LIMITS)


TWO = {"text": "a", "beam_size": 2}


@pytest.mark.parametrize(
    ("document", "beams", "options"),
    [
        ({"instances": ["a", "b"]}, None, [4]),
        ({"instances": [TWO, {**TWO, "text": "b"}]}, None, [2]),
        ({"instances": [{"text": "a", "beam_size": [2]}]}, None, [2]),
        ({"inputs": {"text": ["a", "b"], "beam_size": 2}}, None, [2]),
        ({"inputs": {"text": ["a", "b"], "beam_size": [2]}}, None, [2]),
        ({"inputs": {"text": ["a", "b"], "beam_size": [2, 2]}}, None, [2]),
        # The default, where a row leaves it out.
        ({"instances": [TWO, {"text": "b"}]}, [2, 4], None),
        # As in TF Serving, keys that resemble none of a request are ignored.
        ({"instances": ["a"], **{f"key {number}": number for number in range(100)}}, None, [4]),
    ],
)
def test_a_value_that_is_the_same_for_all_rows_is_an_option(document, beams, options):
    task = read(**document)
    inputs = {name: array.tolist() for name, array in task.inputs.items()}
    assert inputs["text"] == [b"a", b"b"][: task.count]
    assert inputs.get("beam_size") == beams
    assert {name: array.tolist() for name, array in task.options.items()} == (
        {"beam_size": options} if options else {}
    )


def test_equal_options_alone_have_equal_keys():
    two, again, three = (
        read(inputs={"text": ["a"], "beam_size": size}).options_key for size in (2, [2], 3)
    )
    assert two == again != three


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"inputs": ["a"] * 5}, "Task size 5 is larger than maximum input batch size 4"),
        ({"instances": [1] * 5}, "Task size 5 is larger than maximum input batch size 4"),
        ({"inputs": ["äää"]}, "`text` must be no longer than 5 bytes. Received: 6."),
        ({"inputs": [["a", "b"]]}, r"`text` must have shape \[\?\]. Received: \[1,2\]."),
        *(
            (
                {"inputs": {"text": ["a", "b", "c"], "beam_size": sizes}},
                f"`beam_size` must have one value, or 3, one a row. Received: {len(sizes)}.",
            )
            for sizes in ([1, 2], [2] * 5)
        ),
        ({"inputs": {"beam_size": [1]}}, "Missing named input: text in 'inputs' object."),
        (
            {"inputs": {"text": ["a"], "beam_sise": [1]}},
            "does not have named input: beam_sise. Expected: text,beam_size.",
        ),
        (
            {"instances": [{"text": "a", "beam_sise": 1}]},
            "element: 0 key: beam_sise .* does not have named input: beam_sise",
        ),
        (
            {"instances": [{"beam_size": 1}]},
            "keys must be equal to: text,beam_size, of which beam_size may be left out",
        ),
        (
            {"instances": ["a"], "glossry": {"a": "b"}},
            'Unknown key "glossry". Did you mean "glossary"',
        ),
        ({"glossry": {}}, "Missing 'inputs' or 'instances' key"),
        ({"instances": "a"}, "Expecting 'instances' to be an list/array"),
        (
            {"instances": ["a", {"text": "b"}]},
            "Expecting value/list but got object at item 1 of input list",
        ),
        ({"instances": ["a", ["b", "c"]]}, r"Expecting shape \[\] but got: \[2\]"),
        (
            {"instances": [{"text": "a", "beam_size": 2}, "b"]},
            "Expecting object but got list at item 1 of input list",
        ),
    ],
)
def test_a_request_that_breaks_the_signature_or_a_limit_is_refused(document, words):
    with pytest.raises(RequestError, match=words) as refused:
        read(**document)
    assert refused.value.status == 400


def test_joined_requests_are_parted_again():
    tasks = [read(inputs=texts) for texts in (["a"], ["b", "c"], [])]
    together = joined(tasks)
    assert together["text"].tolist() == [b"a", b"b", b"c"]
    assert together["beam_size"].tolist() == [4]
    parts = parted({"out": together["text"]}, [task.count for task in tasks])
    assert [part["out"].tolist() for part in parts] == [
        task.inputs["text"].tolist() for task in tasks
    ]


def test_signatures_whose_width_may_depend_on_the_longest_text_share_no_batch():
    def mergeable(*shapes):
        specs = {str(shape): TensorSpec("", np.dtype(object), shape) for shape in shapes}
        return Signature({}, specs, {}).is_mergeable

    assert mergeable((None,), (None, 4))
    assert not mergeable((None,), (None, None))
    assert not mergeable(None)
    assert not mergeable(())


def test_a_picture_may_be_longer_than_a_text():
    signature = Signature({"png": TEXT}, {"out": TEXT}, {})
    task = rows({"png": np.array([b"123456"], object)}, signature, LIMITS)
    assert task.inputs["png"].tolist() == [b"123456"]
