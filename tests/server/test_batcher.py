"""Requests that share a batch get what they would get alone."""

import dataclasses
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi")

from keras_transformer.server.batcher import Batcher
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import Rows

HOUR = 3600 * 10**6


def task(*values, **options):
    return Rows(
        len(values),
        {"x": np.array(values)},
        {name: np.array([value]) for name, value in options.items()},
    )


class Recorder:
    """Doubles `x`, remembers each batch, and refuses 13. It works only while its gate is open."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.at_work = threading.Semaphore(0)

    def __call__(self, inputs, cancellation=None):
        self.at_work.release()
        self.gate.wait()
        self.batches.append(inputs["x"].tolist())
        if 13 in inputs["x"]:
            raise RequestError(400, "unlucky")
        return {"y": inputs["x"] * 2}


@pytest.fixture
def run():
    return Recorder()


@pytest.fixture
def make():
    """Makes batchers, and closes them."""
    made = []

    def make(**options):
        options = {"num_batch_threads": 1, "batch_timeout_micros": HOUR, **options}
        made.append(Batcher(ServeOptions(**options)))
        return made[-1]

    yield make
    for batcher in made:
        batcher.hurry()
        batcher.close()


def results(futures):
    return [future.result()["y"].tolist() for future in futures]


def test_a_full_batch_is_run_at_once_and_each_request_gets_its_own_rows(make, run):
    batcher = make(max_batch_size=6)
    futures = [batcher.submit(task(*values), run, "key") for values in ([1], [2, 3], [4, 5, 6])]
    assert results(futures) == [[2], [4, 6], [8, 10, 12]]
    assert run.batches == [[1, 2, 3, 4, 5, 6]]


def test_a_batch_that_is_not_full_is_run_after_its_time(make, run):
    batcher = make(batch_timeout_micros=1)
    assert results([batcher.submit(task(1), run, "key")]) == [[2]]


def test_a_batch_waits_until_it_is_full(make, run):
    batcher = make(max_batch_size=2)
    first = batcher.submit(task(1), run, "key")
    assert not first.done()
    assert batcher.depth == 1
    assert results([first, batcher.submit(task(2), run, "key")]) == [[2], [4]]
    assert run.batches == [[1, 2]]


@pytest.mark.parametrize(
    ("keys", "batches"),
    [(["a", "b"], [[1], [2]]), ([None, None], [[1], [2]]), (["a", "a"], [[1, 2]])],
)
def test_requests_share_a_batch_where_their_keys_are_equal(make, run, keys, batches):
    batcher = make()
    futures = [batcher.submit(task(number), run, key) for number, key in enumerate(keys, 1)]
    batcher.hurry()
    assert results(futures) == [[2], [4]]
    assert run.batches == batches


def test_a_request_that_would_overfill_a_batch_opens_another(make, run):
    batcher = make(max_batch_size=3)
    futures = [batcher.submit(task(*values), run, "key") for values in ([1, 2], [3, 4], [5])]
    batcher.hurry()
    assert results(futures) == [[2, 4], [6, 8], [10]]
    assert run.batches == [[1, 2, 5], [3, 4]]


def test_a_request_that_fails_fails_no_other(make, run):
    batcher = make(max_batch_size=3)
    futures = [batcher.submit(task(value), run, "key") for value in (1, 13, 3)]
    assert results([futures[0], futures[2]]) == [[2], [6]]
    assert str(futures[1].exception()) == "unlucky"
    assert run.batches == [[1, 13, 3], [1], [13], [3]]


def test_outputs_that_cannot_be_parted_are_asked_for_one_by_one(make):
    batcher = make(max_batch_size=2)
    futures = [
        batcher.submit(task(value), lambda inputs, _: {"y": inputs["x"].sum(keepdims=True)}, "key")
        for value in (1, 2)
    ]
    assert results(futures) == [[1], [2]]


def test_a_full_queue_refuses_and_loses_nothing(make, run):
    batcher = make(max_enqueued_batches=2, batch_timeout_micros=0)
    run.gate.clear()
    futures = [batcher.submit(task(0), run)]
    run.at_work.acquire()
    futures += [batcher.submit(task(value), run) for value in (1, 2)]
    with pytest.raises(RequestError, match="is full: 2 batches wait") as refused:
        batcher.submit(task(3), run)
    assert refused.value.status == 503
    run.gate.set()
    assert results(futures) == [[0], [2], [4]]
    assert results([batcher.submit(task(3), run)]) == [[6]]


def test_closing_answers_what_was_taken_and_takes_no_more(make, run):
    batcher = make()
    futures = [batcher.submit(task(value), run, "key") for value in (1, 2)]
    batcher.close()
    assert [future.done() for future in futures] == [True, True]
    assert results(futures) == [[2], [4]]
    with pytest.raises(RequestError, match="shutting down") as refused:
        batcher.submit(task(3), run, "key")
    assert refused.value.status == 503


def test_threads_work_at_the_same_time(make, run):
    batcher = make(num_batch_threads=2, batch_timeout_micros=0)
    run.gate.clear()
    futures = [batcher.submit(task(value), run) for value in (1, 2)]
    # Neither can end before both have begun.
    run.at_work.acquire()
    run.at_work.acquire()
    run.gate.set()
    assert results(futures) == [[2], [4]]


def test_each_batch_is_told(make, run):
    told = []
    batcher = make(max_batch_size=2)
    batcher.on_batch = told.append
    results([batcher.submit(task(*values), run, "key") for values in ([1, 2], [3], [4])])
    assert told == [2, 2]


def test_a_batch_that_nobody_waits_for_is_not_begun(make, run):
    batcher = make()
    batcher.submit(task(1), run, "key").cancel()
    assert batcher.depth == 0
    assert run.batches == []


def test_large_batches_are_run_one_at_a_time_and_small_ones_beside_them(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=0)
    run.gate.clear()
    large = [
        batcher.submit(dataclasses.replace(task(value), row_memory=50), run) for value in (1, 2)
    ]
    run.at_work.acquire()
    small_run = Recorder()
    small = batcher.submit(dataclasses.replace(task(3), row_memory=1), small_run)
    assert results([small]) == [[6]]
    assert batcher.depth == 1
    run.gate.set()
    assert results(large) == [[2], [4]]


def test_no_large_batch_begins_while_a_version_is_loaded(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=1)
    with batcher.without_large():
        large = batcher.submit(dataclasses.replace(task(1), row_memory=50), run)
        assert results([batcher.submit(task(2), run)]) == [[4]]
        assert not large.done()
    assert results([large]) == [[2]]
    assert run.batches == [[2], [1]]


def test_a_version_that_is_loaded_for_long_holds_large_batches_no_longer(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=1)
    with batcher.without_large(seconds=0):
        large = batcher.submit(dataclasses.replace(task(1), row_memory=50), run)
        assert results([large]) == [[2]]


def test_large_batches_that_wait_take_no_place_of_small_ones(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=0, max_enqueued_batches=1)
    run.gate.clear()
    large = dataclasses.replace(task(1), row_memory=50)
    futures = [batcher.submit(large, run)]
    run.at_work.acquire()
    futures.append(batcher.submit(large, run))
    with pytest.raises(RequestError, match="is full"):
        batcher.submit(large, run)
    assert results([batcher.submit(task(3), Recorder())]) == [[6]]
    run.gate.set()
    assert results(futures) == [[2], [2]]
