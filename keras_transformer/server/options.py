"""The server's options, named as TF Serving's; the variables by which Vertex AI configures a
container; and the error of a refused request.
"""

import dataclasses
import re
from collections.abc import Mapping

from pipelines.options import Options, option

# Vertex AI's environment variables: the port, and the paths for health and predictions.
PORT = "AIP_HTTP_PORT"
HEALTH = "AIP_HEALTH_ROUTE"
PREDICT = "AIP_PREDICT_ROUTE"
PATH = r"/[A-Za-z0-9_.:/-]*"


class ServeOptions(Options):
    """Server."""

    model_base_path: str | None = option(
        None,
        "Folder of the versions of a SavedModel, or of graphs of ONNX or LiteRT, such as "
        "saved_models/<name>.",
        path=True,
    )
    model_name: str | None = option(
        None, "Name of the model in the URLs. Default: the name of its folder."
    )
    host: str = option("127.0.0.1", "Address to listen at; 0.0.0.0: every address of this machine.")
    rest_api_port: int = option(
        8501, "Port to listen at; 0: any free port.", at_least=0, at_most=65535
    )
    rest_api_enable_cors_support: bool = option(
        False, "Admit requests from pages of other sites, by the CORS headers of TF Serving."
    )
    file_system_poll_wait_seconds: float = option(
        1.0, "Seconds between two checks for a new version.", at_least=0.01, at_most=86_400
    )
    glossary: str | None = option(
        None,
        "File with a term, a tab and its translation in each line, for all requests to a model "
        'that was trained with --protect or --glossary_rate. Terms of a request, {"glossary": '
        "{...}}, come first.",
        path=True,
    )
    max_batch_size: int = option(
        64, "Limit of texts in a request, and in a batch of requests.", at_least=1
    )
    batch_timeout_micros: int = option(
        5000,
        "Microseconds that a request waits for others to share its batch.",
        at_least=0,
        at_most=3_600_000_000,
    )
    max_enqueued_batches: int = option(
        100,
        "Limit of waiting batches, of small and of large ones each. Beyond it the answer is 503.",
        at_least=1,
    )
    num_batch_threads: int | None = option(
        None,
        "Number of batches that are computed at the same time. Default: the number of cores.",
        at_least=1,
    )
    max_request_bytes: int = option(1048576, "Limit of a request in bytes.", at_least=1)
    max_text_bytes: int = option(5000, "Limit of a text in bytes of UTF-8.", at_least=1)
    max_response_bytes: int = option(
        268435456,
        "Limit of an answer in bytes, estimated from the size of the request. A request beyond it "
        "is answered with 400 before anything is computed.",
        at_least=1,
    )
    max_memory_bytes: int = option(
        2147483648,
        "Limit in bytes of the memory that requests may take beside the model, estimated from "
        "their shapes and options. A request may take half of it; those over a quarter are "
        "computed one at a time. A request's rows are computed in parts if they then fit.",
        at_least=1,
    )
    request_timeout_ms: int = option(
        30000,
        "Limit in milliseconds from a request's last byte to its answer; beyond it the answer is "
        "504. A request may lower it by the header grpc-timeout or x-envoy-expected-rq-timeout-ms.",
        at_least=1,
    )

    @property
    def most_memory(self) -> int:
        """Bytes that one batch may take: half of all, so that small ones can run beside it."""
        return self.max_memory_bytes // 2


@dataclasses.dataclass(frozen=True)
class Vertex:
    """Vertex AI's port and two paths; None for those that are not set."""

    port: int | None = None
    health: str | None = None
    predict: str | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Vertex":
        """Read the variables. Empty ones count as not set."""
        port = environment.get(PORT) or None
        if port is not None and not (re.fullmatch("[0-9]{1,5}", port) and int(port) < 2**16):
            raise ValueError(f"{PORT} must be a port, 0 to 65535. Received: {port!r}.")
        paths = {name: environment.get(name) or None for name in (HEALTH, PREDICT)}
        for name, path in paths.items():
            if path is not None and not re.fullmatch(PATH, path):
                raise ValueError(
                    f"{name} must be a path of letters, digits and _ . : - such as /predict. "
                    f"Received: {path!r}."
                )
        return cls(None if port is None else int(port), *paths.values())


class RequestError(Exception):
    """A refused request: its HTTP status, and a message of what was expected and received."""

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status
        self.message = message
