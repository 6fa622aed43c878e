"""What the server counts, for Prometheus."""

from collections.abc import Callable

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server, each with a registry of its own.

    Args:
        batcher_depth: gives the number of batches that wait.
        served_versions: gives the number of versions that are served.
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
        self._rows = Histogram(
            "serve_batch_rows",
            "Rows of the batches that were run.",
            buckets=ROWS,
            registry=registry,
        )
        Gauge(
            "serve_queue_batches", "Batches that wait for a thread.", registry=registry
        ).set_function(batcher_depth)
        Gauge("serve_loaded_versions", "Versions in memory.", registry=registry).set_function(
            served_versions
        )

    def answered(self, signature: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(signature, str(status)).inc()
        self._seconds.labels(signature).observe(seconds)

    def batch_run(self, rows: int) -> None:
        """Count a batch."""
        self._rows.observe(rows)

    def page(self) -> bytes:
        """Give all counters in the text format that Prometheus reads."""
        return prometheus_client.generate_latest(self._registry)
