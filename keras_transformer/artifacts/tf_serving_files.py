"""What TF Serving reads beside a graph: requests to warm up with before a version is served, and
how to make batches of requests.
"""

import os

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

# Sizes that the server fills batches up to.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
MICROSECONDS = 2000


def write_warmup_requests(path, functions, texts, model_name):
    """TFRecords of PredictionLog: the default signature with a batch of each size, and every other
    one with one sentence.

    Args:
        path: `assets.extra/tf_serving_warmup_requests`.
        functions: signatures by name.
        texts: bytes, at least one.
        model_name: as the server has it.
    """
    with tf.io.TFRecordWriter(str(path)) as writer:
        for size in BATCH_SIZES:
            batch = [texts[number % len(texts)] for number in range(size)]
            writer.write(_prediction_log(model_name, "serving_default", {"text": batch}))
        for name, function in functions.items():
            # Options, which have defaults, are numbers.
            required = {
                one.name: texts[:1] for one in function.input_signature if one.dtype == tf.string
            }
            if name != "serving_default":
                writer.write(_prediction_log(model_name, name, required))


def _prediction_log(model_name, signature, inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    for name, values in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values, tf.string))
    return prediction_log_pb2.PredictionLog(
        predict_log=prediction_log_pb2.PredictLog(request=request)
    ).SerializeToString()


def write_batching_parameters(path):
    """A text file for `--batching_parameters_file`, with a thread for each core of this machine;
    edit it for another.
    """
    sizes = "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)
    path.write_text(
        f"max_batch_size {{ value: {BATCH_SIZES[-1]} }}\n"
        f"batch_timeout_micros {{ value: {MICROSECONDS} }}\n"
        f"max_enqueued_batches {{ value: 100 }}\n"
        f"num_batch_threads {{ value: {os.cpu_count()} }}\n{sizes}",
        encoding="utf-8",
    )
