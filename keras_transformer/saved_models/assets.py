"""The `assets.extra` of a SavedModel: golden examples, and the files that TF Serving reads.

`golden.jsonl` has a JSON object a line: the inputs and outputs of "serving_default" by name,
without the batch axis, and inputs that only other signatures have. Strings are as in TF Serving's
REST interface, {"b64": ...} if they are not UTF-8. So a translator's line is
{"text": "...", "translation": "..."}.
"""

import base64
import inspect
import json
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from keras_transformer.saved_models.self_check import arguments

# Sizes to which the server pads batches.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
MICROSECONDS = 2000


def golden_examples(functions: Mapping, inputs: Sequence[Mapping]) -> list[dict[str, np.ndarray]]:
    """Return golden inputs with the live functions' outputs for them, computed one by one."""
    serve = functions["serving_default"]
    dtypes = {spec.name: spec.dtype for spec in serve.input_signature}
    examples = []
    for example in inputs:
        batch = {
            name: tf.constant(example[name][None], dtype)
            for name, dtype in dtypes.items()
            if name in example
        }
        outputs = {
            name: np.array(tensor[0].numpy(), tensor.dtype.as_numpy_dtype)
            for name, tensor in serve(**batch).items()
        }
        if both := sorted(outputs.keys() & example.keys()):
            raise ValueError(
                f"nothing was exported: {', '.join(both)} is an input and an output of "
                "serving_default. Give the output another name."
            )
        examples.append({**example, **outputs})
    return examples


def write_golden(path: pathlib.Path, examples: Sequence[Mapping]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for example in examples:
            line = {name: _as_json(array.tolist()) for name, array in example.items()}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _as_json(value):
    if isinstance(value, list):
        return [_as_json(element) for element in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def write_warmup_requests(
    path: pathlib.Path, functions: Mapping, examples: Sequence[Mapping], model_name: str
) -> None:
    """Write `tf_serving_warmup_requests`, TFRecords of PredictionLog: "serving_default" with a
    batch of each size, every other function with the first golden example.
    """
    default = _required(functions["serving_default"])
    shapes = [example[name].shape for name in default for example in examples[:1]]
    alike = [example for example in examples if [example[name].shape for name in default] == shapes]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for size in BATCH_SIZES:
            batch = [alike[number % len(alike)] for number in range(size)]
            inputs = {name: np.stack([example[name] for example in batch]) for name in default}
            writer.write(_prediction_log(model_name, "serving_default", inputs, default))
        for name, function in functions.items():
            if name != "serving_default":
                dtypes = _required(function)
                inputs = arguments(dtypes, examples[0])
                writer.write(_prediction_log(model_name, name, inputs, dtypes))


def _required(function):
    """Return the dtypes of the inputs that have no default, by name."""
    parameters = inspect.signature(function.python_function).parameters.values()
    return {
        specification.name: specification.dtype
        for specification, parameter in zip(function.input_signature, parameters, strict=True)
        if parameter.default is parameter.empty
    }


def _prediction_log(model_name, signature, inputs, dtypes):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    for name, values in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values, dtypes[name]))
    return prediction_log_pb2.PredictionLog(
        predict_log=prediction_log_pb2.PredictLog(request=request)
    ).SerializeToString()


def write_batching_parameters(path: pathlib.Path) -> None:
    """Write a text file for `--batching_parameters_file`, with a thread for each core of this
    machine. Edit it for another machine.
    """
    sizes = "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)
    path.write_text(
        f"max_batch_size {{ value: {BATCH_SIZES[-1]} }}\nbatch_timeout_micros {{ value: "
        f"{MICROSECONDS} }}\nmax_enqueued_batches {{ value: 100 }}\nnum_batch_threads {{ value: "
        f"{os.cpu_count()} }}\n{sizes}",
        encoding="utf-8",
    )
