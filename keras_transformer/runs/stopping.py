"""Stop one run of a session's graph from another thread, between two of its operations, also
inside its loops.

The public API of TensorFlow's sessions has no call for it; but a run ends as soon as one of its
operations fails. So each run also waits at a queue of its own for the word whether it may end well:
its outputs send it when they are there, `Stop.set` sends the other.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf


class Stopped(Exception):
    """A run that was stopped, or not begun because it had been."""


class Stop:
    """What stops a run.

    Attributes:
        is_set: whether it was stopped.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._send = None
        self.is_set = False

    def set(self) -> None:
        """Stop the run that goes on, and those that would begin."""
        with self._lock:
            self.is_set = True
            if self._send:
                self._send()

    @contextlib.contextmanager
    def reaching(self, send: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `set` calls `send`.

        Raises:
            Stopped: if it is set; after the block, too.
        """
        with self._lock:
            if self.is_set:
                raise Stopped
            self._send = send
        try:
            yield
        finally:
            with self._lock:
                self._send = None
        if self.is_set:
            raise Stopped


class StoppableRuns:
    """Runs of a session's graph, of which each can be stopped.

    Args:
        session: a `tf.compat.v1.Session`.
        most: runs at a time; others wait.
    """

    def __init__(self, session: tf.compat.v1.Session, most: int):
        self._session = session
        self._most = most
        self._free = queue.SimpleQueue()
        for number in range(most):
            self._free.put(number)
        with session.graph.as_default(), tf.device("/CPU:0"):
            self._number = tf.compat.v1.placeholder(tf.int32, [])
            queues = [tf.queue.FIFOQueue(2, [tf.bool], [()]) for _ in range(most)]
            self._queue = tf.switch_case(
                self._number, [lambda one=one: one.queue_ref for one in queues]
            )
            [may_end] = tf.raw_ops.QueueDequeueV2(handle=self._queue, component_types=[tf.bool])
            self._watch = tf.raw_ops.Assert(condition=may_end, data=["the run was stopped"])
            self._send_stop = session.make_callable(self._send(tf.constant(False)), [self._number])
            words = tf.raw_ops.QueueSizeV2(handle=self._queue)
            self._forget = session.make_callable(
                tf.raw_ops.QueueDequeueManyV2(
                    handle=self._queue, n=words, component_types=[tf.bool]
                ),
                [self._number],
            )

    def function(self, outputs: list[str], inputs: list[str]) -> Callable[..., list[np.ndarray]]:
        """A function of a `Stop` and of arrays for `inputs`, names of tensors, that gives arrays
        for `outputs`.
        """
        graph = self._session.graph
        with graph.as_default(), tf.device("/CPU:0"):
            # A control dependency would be fulfilled too early: it does not wait for what a
            # function gives, only for what else it does.
            sizes = [tf.raw_ops.Size(input=graph.get_tensor_by_name(name)) for name in outputs]
            done = self._send(tf.reduce_all(tf.stack(sizes) >= 0))
        call = self._session.make_callable([*outputs, self._watch, done], [*inputs, self._number])
        plain = self._session.make_callable(outputs, inputs)

        def run(stop, *arrays):
            number = self._free.get()
            try:
                with stop.reaching(lambda: self._send_stop(number)):
                    return call(*arrays, number)[: len(outputs)]
            except (tf.errors.OpError, Stopped) as error:
                self._forget(number)
                if stop.is_set:
                    raise Stopped from error
                if isinstance(error, tf.errors.CancelledError):
                    # The failure has ended the wait, and that was told in its place.
                    return plain(*arrays)
                raise
            finally:
                self._free.put(number)

        return run

    def close(self) -> None:
        """Return when all runs have ended, and let none begin."""
        for _ in range(self._most):
            self._free.get()

    def _send(self, word):
        return tf.raw_ops.QueueEnqueueV2(handle=self._queue, components=[word])
