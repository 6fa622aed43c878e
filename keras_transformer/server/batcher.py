"""Dynamic batching: one call answers requests that arrive close together, by TF Serving's options.

A batch stays open until it has `max_batch_size` rows, or until its first request has waited
`batch_timeout_micros` and a thread is free. Only requests with equal keys share a batch.

A batch starts when the memory that it is expected to take is free. A batch that takes more than a
quarter of all memory is large: large ones run one at a time, on a thread of their own, so that they
never block small ones. No large batch starts while a new version is loaded.
"""

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator

from keras_transformer.server import rows
from keras_transformer.server.options import RequestError, ServeOptions

# A small batch takes at most 1/4 of the memory.
SMALL = 4
# A run watches this future, which another thread cancels when nobody waits for the run any more.
Cancellation = concurrent.futures.Future


@dataclasses.dataclass(eq=False)
class _Batch:
    """Requests that one call will answer; `tasks` are pairs of `Rows` and their outputs' future."""

    key: object
    run: object
    opened: float
    tasks: list
    cancellation: Cancellation = dataclasses.field(default_factory=Cancellation)

    @property
    def count(self):
        return sum(task.count for task, _ in self.tasks)

    @property
    def row_memory(self):
        """Bytes that each row may take: every row is padded to the longest."""
        return max(task.row_memory for task, _ in self.tasks)

    @property
    def memory(self):
        """Bytes that it may take."""
        return self.count * self.row_memory

    @property
    def is_wanted(self):
        """Whether anybody waits for an answer."""
        return not all(future.cancelled() for _, future in self.tasks)

    def answer(self):
        """Run it. If it fails, run each request alone, so that only the bad one fails."""
        tasks = [(task, future) for task, future in self.tasks if not future.cancelled()]
        if not tasks:
            return
        requests = [task for task, _ in tasks]
        try:
            outputs = self.run(rows.joined(requests), self.cancellation)
            answers = rows.parted(outputs, [request.count for request in requests])
        except Exception as error:
            if len(tasks) == 1:
                _settle(tasks[0][1].set_exception, error)
                return
            for pair in tasks:
                dataclasses.replace(self, tasks=[pair]).answer()
            return
        for (_, future), answer in zip(tasks, answers, strict=True):
            _settle(future.set_result, answer)


def _return_free_memory():
    """Let glibc return freed memory to the system, most of which it would keep (takes 15 ms)."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def _settle(settle, value):
    """Set a future's result or error, unless the future was cancelled meanwhile."""
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        settle(value)


class Batcher:
    """A bounded queue of batches of at most `max_batch_size` rows, and the threads that run them.
    `on_batch` is called with the number of rows of each batch before it runs.
    """

    def __init__(self, options: ServeOptions):
        self.max_batch_size = options.max_batch_size
        self.max_enqueued_batches = options.max_enqueued_batches
        self._timeout = options.batch_timeout_micros / 1e6
        self._memory = options.max_memory_bytes
        self._most_small = options.num_batch_threads or os.cpu_count()
        self.on_batch = lambda rows: None
        self._waiting = []
        self._running = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._holds_large = False
        self._threads = [
            threading.Thread(target=self._work, name=f"batch-{number}")
            for number in range(self._most_small + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def depth(self) -> int:
        """The number of batches that wait for a thread."""
        return len(self._waiting)

    def submit(
        self, task: rows.Rows, run: Callable[[dict, Cancellation], dict], key: tuple | None = None
    ) -> concurrent.futures.Future:
        """Enqueue a request and return the future of its outputs. A batch is cancelled when all its
        futures are. `run` takes arrays by name and a `Cancellation`, and returns arrays by name.
        Requests with equal keys may share a batch; a request without a key gets its own.
        """
        future = concurrent.futures.Future()
        with self._changed:
            if self._is_closed:
                raise RequestError("The server is shutting down.", 503)
            batch = self._open_batch(task, key)
            if batch:
                batch.tasks.append((task, future))
            else:
                batch = _Batch(key, run, time.monotonic(), [(task, future)])
                self._enqueue(batch)
            self._changed.notify_all()
        future.add_done_callback(lambda _: self._cancel_if_unwanted(batch))
        return future

    def _enqueue(self, batch):
        # Large and small batches have a queue limit each.
        is_large = self._is_large(batch)
        alike = sum(self._is_large(waiting) == is_large for waiting in self._waiting)
        if alike >= self.max_enqueued_batches:
            raise RequestError(
                "The batch scheduling queue to which this task was submitted is full: "
                f"{self.max_enqueued_batches} batches wait. Try again later.",
                503,
            )
        self._waiting.append(batch)

    def _cancel_if_unwanted(self, batch):
        with self._changed:
            if batch.is_wanted:
                return
            if batch in self._waiting:
                self._waiting.remove(batch)
        batch.cancellation.cancel()

    @contextlib.contextmanager
    def without_large(self, seconds: float = 10.0) -> Iterator[None]:
        """Start no large batch within the block, or for `seconds` if the block takes longer."""
        timer = threading.Timer(seconds, self._hold_large, [False])
        self._hold_large(True)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._hold_large(False)

    def _hold_large(self, holds):
        with self._changed:
            self._holds_large = holds
            self._changed.notify_all()

    def hurry(self) -> None:
        """From now on, run batches without waiting for more requests to join them."""
        with self._changed:
            self._timeout = 0
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse further requests, and return when all pending ones are answered."""
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
            if batch.key == key
            and batch.count + task.count <= self.max_batch_size
            and (batch.count + task.count) * max(batch.row_memory, task.row_memory)
            <= self._memory // SMALL
        )
        return next(fitting, None)

    def _work(self):
        while (batch := self._next()) is not None:
            try:
                self.on_batch(batch.count)
                batch.answer()
            finally:
                if self._is_large(batch) or not batch.is_wanted:
                    _return_free_memory()
                with self._changed:
                    self._running.remove(batch)
                    self._changed.notify_all()
                # Break the cycle of batch and futures, so that answers are freed at once.
                batch.tasks.clear()

    def _next(self):
        """Wait for a full or due batch that may run, and take the oldest; None after closing."""
        with self._changed:
            while True:
                now = time.monotonic()
                ready = [batch for batch in self._waiting if self._is_ready(batch, now)]
                for batch in filter(self._has_room, ready):
                    self._waiting.remove(batch)
                    self._running.append(batch)
                    return batch
                if self._is_closed and not self._waiting:
                    return None
                opens = [batch.opened for batch in self._waiting if batch not in ready]
                self._changed.wait(min(opens) + self._timeout - now if opens else None)

    def _is_ready(self, batch, now):
        return (
            batch.key is None
            or self._is_closed
            or batch.count >= self.max_batch_size
            or batch.opened + self._timeout <= now
        )

    def _has_room(self, batch):
        large = sum(map(self._is_large, self._running))
        if self._is_large(batch):
            if large or self._holds_large:
                return False
        elif len(self._running) - large >= self._most_small:
            return False
        in_use = sum(running.memory for running in self._running)
        return not self._running or in_use + batch.memory <= self._memory

    def _is_large(self, batch):
        return batch.memory > self._memory // SMALL
