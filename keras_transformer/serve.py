"""Serve a SavedModel, or graphs of ONNX or LiteRT, with TF Serving's REST interface: `python -m
keras_transformer.serve --model_base_path=saved_models/NAME`.

Use it to try a model without TF Serving: it has the same URLs and JSON, and a page to type in at /.
"""

import dataclasses
import os

from keras_transformer import flags
from keras_transformer.server.options import ServeOptions, Vertex
from pipelines import needing

SECTIONS = (ServeOptions,)


def main(FLAGS):
    from keras_transformer.startup import give_memory_back, spread_over_cores

    with needing("serve", "the server"):
        from keras_transformer.server.running import serve
    flags.required(FLAGS, "model_base_path")
    # The GPU may have other users: take memory as it is needed.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    give_memory_back()
    cores = spread_over_cores()
    options = ServeOptions.of(flags.values(FLAGS, *SECTIONS))
    vertex = Vertex.of(os.environ)
    # A flag overrides the variables of the container's host.
    if vertex.port is not None and not FLAGS["rest_api_port"].present:
        options = dataclasses.replace(options, rest_api_port=vertex.port)
    options = dataclasses.replace(options, num_batch_threads=options.num_batch_threads or cores)
    serve(options, vertex)


if __name__ == "__main__":
    flags.run(main, SECTIONS)
