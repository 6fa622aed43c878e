"""Flags of the server, named as TF Serving names them where it has them."""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

SERVE = flags.FlagValues()
DEFINE_path(
    "model_base_path",
    None,
    "Folder of a SavedModel's versions, such as saved_models/<name>.",
    SERVE,
)
flags.DEFINE_string(
    "model_name", None, "Name of the model in the URLs. Default: the name of its folder.", SERVE
)
flags.DEFINE_string(
    "host",
    "127.0.0.1",
    "Address to listen at; 0.0.0.0: every address of this machine.",
    SERVE,
)
flags.DEFINE_integer(
    "rest_api_port", 8501, "Port to listen at; 0: any free port.", 0, 65535, flag_values=SERVE
)
flags.DEFINE_bool(
    "rest_api_enable_cors_support",
    False,
    "Let pages of other sites ask: answers have the CORS headers of TF Serving.",
    SERVE,
)
flags.DEFINE_float(
    "file_system_poll_wait_seconds",
    1.0,
    "Seconds between two checks for a new version.",
    0.01,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "max_batch_size",
    64,
    "Limit of texts in a request, and in a batch of requests.",
    1,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "batch_timeout_micros",
    5000,
    "Microseconds that a request waits for others to join it.",
    0,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "max_enqueued_batches",
    100,
    "Limit of waiting batches, of small and of large ones each. Beyond it: 503.",
    1,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "num_batch_threads",
    None,
    "Number of batches that are computed at the same time. Default: the number of cores.",
    1,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "max_request_bytes", 2**20, "Limit of a request in bytes.", 1, flag_values=SERVE
)
flags.DEFINE_integer(
    "max_text_bytes", 5000, "Limit of a text in bytes of UTF-8.", 1, flag_values=SERVE
)
flags.DEFINE_integer(
    "max_response_bytes",
    2**28,
    "Limit of an answer in bytes, as large as texts of so many bytes may make it. A request beyond "
    "it is answered with 400 before anything is computed.",
    1,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "max_memory_bytes",
    2**31,
    "Limit of the memory that requests may take beside the model, in bytes, worked out from their "
    "shapes and options. A request may take half of it; what takes more than a quarter is computed "
    "one at a time. A request's rows are computed in parts where that suffices.",
    1,
    flag_values=SERVE,
)
flags.DEFINE_integer(
    "request_timeout_ms",
    30000,
    "Limit of the milliseconds from a request's last byte to its answer, which is 504 then. A "
    "request may ask for less, by the header grpc-timeout or x-envoy-expected-rq-timeout-ms.",
    1,
    flag_values=SERVE,
)
