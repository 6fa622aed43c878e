"""The server's counters for Prometheus, and its log: one JSON object a line on standard error. The
log never contains a user's text.
"""

import datetime
import json
import logging
import sys
from collections.abc import Callable
from typing import TextIO

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LOGGER = logging.getLogger("keras_transformer.server")


class Metrics:
    """Counters of one server, in a registry of their own. The two functions return the number of
    waiting batches and of served versions.
    """

    content_type = prometheus_client.CONTENT_TYPE_LATEST

    def __init__(self, batcher_depth: Callable[[], int], served_versions: Callable[[], int]):
        registry = self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        self._requests = Counter(
            "serve_requests",
            "Requests to predict, by signature and HTTP status.",
            ["signature", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "serve_request_seconds",
            "From a request's last byte to its answer.",
            ["signature"],
            buckets=SECONDS,
            registry=registry,
        )
        rows = Histogram(
            "serve_batch_rows", "Rows of the batches.", buckets=ROWS, registry=registry
        )
        self.batch_run = rows.observe
        waiting = Gauge("serve_queue_batches", "Batches that wait for a thread.", registry=registry)
        waiting.set_function(batcher_depth)
        loaded = Gauge("serve_loaded_versions", "Versions in memory.", registry=registry)
        loaded.set_function(served_versions)

    def answered(self, signature: str, status: int, seconds: float) -> None:
        self._requests.labels(signature, str(status)).inc()
        self._seconds.labels(signature).observe(seconds)

    def page(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)


class JsonLines(logging.Formatter):
    """Formats a record as one object: its time, level, event and details."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line = {
            "time": when.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "details", {}),
        }
        if record.exc_info:
            # Only the error's type and place: its message may quote a request.
            kind, _, trace = record.exc_info
            while trace.tb_next:
                trace = trace.tb_next
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            line["error"] = f"{kind.__name__} at {place}"
        return json.dumps(line)


def start_log(stream: TextIO | None = None) -> None:
    """Log events of the server, and uvicorn's warnings, to a stream; by default standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)


def log(event: str, level: int = logging.INFO, exc_info=None, **details) -> None:
    """Log an event with its details, which must not contain a user's text."""
    LOGGER.log(level, event, exc_info=exc_info, extra={"details": details})
