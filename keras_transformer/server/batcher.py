"""Dynamic batching: one call answers requests that come at about the same time. The parameters are
TF Serving's.

A batch is open until it has `max_batch_size` rows, or its first request has waited
`batch_timeout_micros` and a thread is free. Requests whose keys differ never share one.
"""

import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Callable

from keras_transformer.server import rows
from keras_transformer.server.errors import RequestError


@dataclasses.dataclass
class _Batch:
    """Requests that one call will answer: `tasks` holds pairs of `Rows` and the future of their
    outputs.
    """

    key: object
    run: object
    opened: float
    tasks: list = dataclasses.field(default_factory=list)

    @property
    def count(self):
        return sum(task.count for task, _ in self.tasks)


class Batcher:
    """A bounded queue of batches, and the threads that work on them.

    Args:
        max_batch_size: rows of a batch.
        batch_timeout_micros: how long the first request of a batch waits for others.
        max_enqueued_batches: batches that wait for a thread.
        num_batch_threads: batches that are worked on at a time.

    Attributes:
        on_batch: called with the number of rows of each batch before it is run.
    """

    def __init__(
        self,
        max_batch_size: int = 64,
        batch_timeout_micros: int = 5000,
        max_enqueued_batches: int = 100,
        num_batch_threads: int = 2,
    ):
        self.max_batch_size = max_batch_size
        self.max_enqueued_batches = max_enqueued_batches
        self._timeout = batch_timeout_micros / 1e6
        self.on_batch = lambda rows: None
        self._waiting = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"batch-{number}")
            for number in range(num_batch_threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def depth(self) -> int:
        """How many batches wait for a thread."""
        return len(self._waiting)

    def submit(
        self, task: rows.Rows, run: Callable[[dict], dict], key: tuple | None = None
    ) -> concurrent.futures.Future:
        """Put a request into the queue.

        Args:
            task: `Rows`.
            run: takes arrays by name, gives arrays by name.
            key: equal for requests that may share a batch; None: with none.

        Returns:
            A future of the request's outputs.

        Raises:
            RequestError: if the queue is full, or closed.
        """
        future = concurrent.futures.Future()
        with self._changed:
            if self._is_closed:
                raise RequestError(503, "The server is shutting down.")
            batch = self._open_batch(task, key)
            if batch is None:
                if len(self._waiting) >= self.max_enqueued_batches:
                    raise RequestError(
                        503,
                        "The batch scheduling queue to which this task was submitted is full: "
                        f"{self.max_enqueued_batches} batches wait. "
                        "Try again later.",
                    )
                batch = _Batch(key, run, time.monotonic())
                self._waiting.append(batch)
            batch.tasks.append((task, future))
            self._changed.notify()
        return future

    def hurry(self) -> None:
        """Stop waiting for more requests to join a batch, from now on."""
        with self._changed:
            self._timeout = 0
            self._changed.notify_all()

    def close(self) -> None:
        """Take no more requests, and return when all that were taken are answered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _open_batch(self, task, key):
        if key is None:
            return None
        fitting = (
            batch
            for batch in self._waiting
            if batch.key == key and batch.count + task.count <= self.max_batch_size
        )
        return next(fitting, None)

    def _work(self):
        while (batch := self._next()) is not None:
            self.on_batch(batch.count)
            _answer(batch)

    def _next(self):
        """The oldest batch that waits for no more requests; None when there will be none."""
        with self._changed:
            while True:
                now = time.monotonic()
                for batch in self._waiting:
                    if (
                        batch.key is None
                        or self._is_closed
                        or batch.count >= self.max_batch_size
                        or batch.opened + self._timeout <= now
                    ):
                        self._waiting.remove(batch)
                        return batch
                if self._is_closed:
                    return None
                self._changed.wait(
                    min(
                        (batch.opened + self._timeout - now for batch in self._waiting),
                        default=None,
                    )
                )


def _answer(batch):
    """Run a batch. If it fails, run each request alone, so that only the bad one fails."""
    tasks = [
        (task, future) for task, future in batch.tasks if future.set_running_or_notify_cancel()
    ]
    if not tasks:
        return
    together = [task for task, _ in tasks]
    try:
        answers = rows.parted(batch.run(rows.joined(together)), [task.count for task in together])
    except Exception as error:
        if len(tasks) == 1:
            tasks[0][1].set_exception(error)
            return
        for task, future in tasks:
            _answer_alone(batch.run, task, future)
        return
    for (_, future), answer in zip(tasks, answers, strict=True):
        future.set_result(answer)


def _answer_alone(run, task, future):
    try:
        future.set_result(run(rows.joined([task])))
    except Exception as error:
        future.set_exception(error)
