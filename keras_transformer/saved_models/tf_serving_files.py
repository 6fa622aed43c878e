"""What TF Serving reads beside a graph: requests to warm up with before a version is served, and
how to make batches of requests.
"""

import inspect
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from keras_transformer.saved_models.self_check import arguments

# Sizes that the server fills batches up to.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
MICROSECONDS = 2000


def write_warmup_requests(
    path: pathlib.Path, functions: Mapping, examples: Sequence[Mapping], model_name: str
) -> None:
    """Write TFRecords of PredictionLog: the default signature with a batch of each size, and every
    other one with one example.

    Args:
        path: `assets.extra/tf_serving_warmup_requests`.
        functions: signatures by name.
        examples: golden examples, arrays by name, the inputs first; at least one.
        model_name: as the server has it.
    """
    default = _required(functions["serving_default"])
    shapes = [example[name].shape for name in default for example in examples[:1]]
    alike = [one for one in examples if [one[name].shape for name in default] == shapes]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for size in BATCH_SIZES:
            batch = [alike[number % len(alike)] for number in range(size)]
            inputs = {name: np.stack([one[name] for one in batch]) for name in default}
            writer.write(_prediction_log(model_name, "serving_default", inputs, default))
        for name, function in functions.items():
            if name != "serving_default":
                dtypes = _required(function)
                inputs = arguments(dtypes, examples[0])
                writer.write(_prediction_log(model_name, name, inputs, dtypes))


def _required(function):
    """The dtypes of the inputs that have no default, by name."""
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
    machine; edit it for another.
    """
    sizes = "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)
    path.write_text(
        f"max_batch_size {{ value: {BATCH_SIZES[-1]} }}\n"
        f"batch_timeout_micros {{ value: {MICROSECONDS} }}\n"
        f"max_enqueued_batches {{ value: 100 }}\n"
        f"num_batch_threads {{ value: {os.cpu_count()} }}\n{sizes}",
        encoding="utf-8",
    )
