"""Dynamic batching: one call answers requests that come at about the same time. The parameters are
TF Serving's.

A batch is open until it has `max_batch_size` rows, or its first request has waited
`batch_timeout_micros` and a thread is free. Requests whose keys differ never share one.

Batches begin only while the memory that they are expected to take is free. Of the large ones, which
take more than a quarter of it, one is worked on at a time, by a thread more than the small ones
have: they cannot keep small ones from being answered. While a new version is loaded none begins.
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

# What share of the memory a small batch may take.
SMALL = 4
# Says to a run, from another thread, that nobody waits for it any more: then it is cancelled.
Cancellation = concurrent.futures.Future


@dataclasses.dataclass(eq=False)
class _Batch:
    """Requests that one call will answer: pairs of `Rows` and the future of their outputs."""

    key: object
    run: object
    opened: float
    tasks: list
    cancellation: Cancellation = dataclasses.field(default_factory=Cancellation)

    @property
    def count(self):
        return sum(task.count for task, _ in self.tasks)

    @property
    def memory(self):
        """Bytes that it may take: every row is as long as the longest."""
        return self.count * max(task.row_memory for task, _ in self.tasks)

    @property
    def is_wanted(self):
        """Whether anybody waits for an answer."""
        return not all(future.cancelled() for _, future in self.tasks)

    def answer(self):
        """Run it. If it fails, run each request alone, so that only the bad one fails."""
        tasks = [(task, future) for task, future in self.tasks if not future.cancelled()]
        if not tasks:
            return
        together = [task for task, _ in tasks]
        try:
            outputs = self.run(rows.joined(together), self.cancellation)
            answers = rows.parted(outputs, [task.count for task in together])
        except Exception as error:
            if len(tasks) == 1:
                _settle(tasks[0][1].set_exception, error)
                return
            for one in tasks:
                dataclasses.replace(self, tasks=[one]).answer()
            return
        for (_, future), answer in zip(tasks, answers, strict=True):
            _settle(future.set_result, answer)


def _give_memory_back():
    """Let glibc return what is free to the system (measured: 15 ms); without it, it keeps most."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def _settle(settle, value):
    """Unless it was cancelled meanwhile."""
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        settle(value)


class Batcher:
    """A bounded queue of batches of at most `max_batch_size` rows, and the threads that work on
    them. `on_batch` is called with the number of rows of each before it is run.
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
        """How many batches wait for a thread."""
        return len(self._waiting)

    def submit(
        self, task: rows.Rows, run: Callable[[dict, Cancellation], dict], key: tuple | None = None
    ) -> concurrent.futures.Future:
        """Put a request into the queue, and give a future of its outputs. A batch that nobody waits
        for any more is cancelled. `run` takes arrays by name and what cancels it, and gives arrays
        by name. Requests of an equal key may share a batch; one without a key shares none.
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
        # Large ones fill no place of the small ones.
        alike = [one for one in self._waiting if self._is_large(one) == self._is_large(batch)]
        if len(alike) >= self.max_enqueued_batches:
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
        """Begin no large batch within the block, or for so many seconds if it takes longer."""
        over = threading.Timer(seconds, self._hold_large, [False])
        self._hold_large(True)
        over.start()
        try:
            yield
        finally:
            over.cancel()
            self._hold_large(False)

    def _hold_large(self, holds):
        with self._changed:
            self._holds_large = holds
            self._changed.notify_all()

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
            if batch.key == key
            and batch.count + task.count <= self.max_batch_size
            and dataclasses.replace(batch, tasks=[*batch.tasks, (task, None)]).memory
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
                    _give_memory_back()
                with self._changed:
                    self._running.remove(batch)
                    self._changed.notify_all()
                # Its futures lead to it: their answers would stay until Python looks for circles.
                batch.tasks.clear()

    def _next(self):
        """The oldest batch that is full or due and has room; None when there will be none."""
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
        large = [one for one in self._running if self._is_large(one)]
        if self._is_large(batch):
            if large or self._holds_large:
                return False
        elif len(self._running) - len(large) >= self._most_small:
            return False
        taken = sum(one.memory for one in self._running)
        return not self._running or taken + batch.memory <= self._memory

    def _is_large(self, batch):
        return batch.memory > self._memory // SMALL
