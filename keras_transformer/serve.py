"""Serve a SavedModel by TF Serving's REST interface: `python -m keras_transformer.serve
--model_base_path=saved_models/NAME`.

To try a model without TF Serving: the URLs and the JSON are the same, and there is a page at /.
"""

import pathlib

from keras_transformer import flags

GROUPS = ("serve",)


def main(FLAGS):
    from keras_transformer.startup import spread_over_cores

    try:
        from keras_transformer.server.rows import Limits
        from keras_transformer.server.running import serve
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"error: the server needs {error.name}. Install it: pip install "
            "'keras-transformer-nmt[serve]'"
        ) from error
    cores = spread_over_cores()
    folder = pathlib.Path(flags.required_model_base_path(FLAGS))
    serve(
        folder,
        FLAGS.model_name or folder.resolve().name,
        FLAGS.host,
        FLAGS.rest_api_port,
        Limits(
            FLAGS.max_batch_size,
            FLAGS.max_text_bytes,
            FLAGS.max_request_bytes,
            FLAGS.max_response_bytes,
            FLAGS.request_timeout_ms,
        ),
        FLAGS.file_system_poll_wait_seconds,
        cors=FLAGS.rest_api_enable_cors_support,
        batch_timeout_micros=FLAGS.batch_timeout_micros,
        max_enqueued_batches=FLAGS.max_enqueued_batches,
        num_batch_threads=FLAGS.num_batch_threads or cores,
        memory=FLAGS.max_memory_bytes,
    )


if __name__ == "__main__":
    flags.run(main, GROUPS)
