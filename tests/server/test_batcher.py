"""Requests that share a batch get what they would get alone."""

import dataclasses
import gc
import json
import threading
import time
import types
import weakref

import numpy as np
import pytest
import sentencepiece

pytest.importorskip("fastapi")

from keras_transformer.saved_models.signature import Signature, TensorSpec
from keras_transformer.server import batcher as module
from keras_transformer.server import costs, transport
from keras_transformer.server.batcher import Batcher
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import Rows

HOUR = 3600 * 10**6


def task(*values):
    return Rows(len(values), {"x": np.array(values)}, {})


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
            raise RequestError("unlucky")
        return {"y": inputs["x"] * 2}


@pytest.fixture
def run():
    return Recorder()


@pytest.fixture
def make():
    """A function that makes batchers, which are closed after the test."""
    batchers = []

    def make(**options):
        options = {"num_batch_threads": 1, "batch_timeout_micros": HOUR, **options}
        batchers.append(Batcher(ServeOptions(**options)))
        return batchers[-1]

    yield make
    for batcher in batchers:
        batcher.hurry()
        batcher.close()


def results(futures):
    return [future.result()["y"].tolist() for future in futures]


ONE_KEY = ("key",) * 4
# The largest batch, the values of each request, their keys, and the batches that are run.
SHARED = {
    "a full batch": (6, [[1], [2, 3], [4, 5, 6]], ONE_KEY, [[1, 2, 3, 4, 5, 6]]),
    "other keys": (64, [[1], [2]], ("a", "b"), [[1], [2]]),
    "no keys": (64, [[1], [2]], (None, None), [[1], [2]]),
    "equal keys": (64, [[1], [2]], ONE_KEY, [[1, 2]]),
    "requests without rows": (2, [[], [1], [], [2]], ONE_KEY, [[1, 2]]),
    "one that would overfill a batch": (3, [[1, 2], [3, 4], [5]], ONE_KEY, [[1, 2, 5], [3, 4]]),
}


@pytest.mark.parametrize("name", SHARED)
def test_requests_share_a_batch_and_each_gets_its_own_rows(make, run, name):
    size, requests, keys, batches = SHARED[name]
    batcher = make(max_batch_size=size)
    batch_sizes = []
    batcher.on_batch = batch_sizes.append
    pairs = zip(requests, keys, strict=False)
    futures = [batcher.submit(task(*values), run, key) for values, key in pairs]
    # A full batch is run at once.
    if any(len(batch) < size for batch in batches):
        batcher.hurry()
    assert results(futures) == [[2 * value for value in values] for values in requests]
    assert run.batches == batches
    assert batch_sizes == [*map(len, batches)]


def test_the_batcher_keeps_no_reference_to_an_answer(make, run):
    gc.disable()
    try:
        answer = weakref.ref(make().submit(task(1), run).result()["y"])
        until = time.monotonic() + 20
        while answer() is not None and time.monotonic() < until:
            pass
    finally:
        gc.enable()
    assert answer() is None


def test_a_batch_waits_until_it_is_full_or_its_time_is_over(make, run):
    assert results([make(batch_timeout_micros=1).submit(task(1), run, "key")]) == [[2]]
    run.batches.clear()
    batcher = make(max_batch_size=2)
    first = batcher.submit(task(1), run, "key")
    assert not first.done()
    assert batcher.depth == 1
    assert results([first, batcher.submit(task(2), run, "key")]) == [[2], [4]]
    assert run.batches == [[1, 2]]


def test_a_request_that_fails_fails_no_other(make, run):
    batcher = make(max_batch_size=3)
    futures = [batcher.submit(task(value), run, "key") for value in (1, 13, 3)]
    assert results([futures[0], futures[2]]) == [[2], [6]]
    assert str(futures[1].exception()) == "unlucky"
    assert run.batches == [[1, 13, 3], [1], [13], [3]]


def test_requests_whose_outputs_cannot_be_parted_run_one_by_one(make):
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


def test_closing_answers_queued_requests_and_refuses_new_ones(make, run):
    batcher = make()
    futures = [batcher.submit(task(value), run, "key") for value in (1, 2)]
    batcher.close()
    assert [future.done() for future in futures] == [True, True]
    assert results(futures) == [[2], [4]]
    with pytest.raises(RequestError, match="shutting down") as refused:
        batcher.submit(task(3), run, "key")
    assert refused.value.status == 503


def large_task(value):
    return dataclasses.replace(task(value), row_memory=50)


def test_large_batches_are_run_one_at_a_time_and_small_ones_beside_them(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=0)
    run.gate.clear()
    large = [batcher.submit(large_task(value), run) for value in (1, 2)]
    run.at_work.acquire()
    small = batcher.submit(dataclasses.replace(task(3), row_memory=1), Recorder())
    assert results([small]) == [[6]]
    assert batcher.depth == 1
    run.gate.set()
    assert results(large) == [[2], [4]]


def test_no_large_batch_begins_while_a_version_is_loaded(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=1)
    with batcher.without_large():
        large = batcher.submit(large_task(1), run)
        assert results([batcher.submit(task(2), run)]) == [[4]]
        assert not large.done()
    assert results([large]) == [[2]]
    assert run.batches == [[2], [1]]
    # A version that loads for long stops holding them back.
    with batcher.without_large(seconds=0):
        assert results([batcher.submit(large_task(1), run)]) == [[2]]


def test_a_queue_full_of_large_batches_still_takes_small_ones(make, run):
    batcher = make(max_memory_bytes=100, batch_timeout_micros=0, max_enqueued_batches=1)
    run.gate.clear()
    large = large_task(1)
    futures = [batcher.submit(large, run)]
    run.at_work.acquire()
    futures.append(batcher.submit(large, run))
    with pytest.raises(RequestError, match="is full"):
        batcher.submit(large, run)
    assert results([batcher.submit(task(3), Recorder())]) == [[6]]
    run.gate.set()
    assert results(futures) == [[2], [2]]


def test_memory_of_large_batches_is_returned_to_the_system(make, monkeypatch):
    returned = []
    monkeypatch.setattr(module, "_return_free_memory", lambda: returned.append(True))
    for some, times in ((task(3), 0), (large_task(1), 1)):
        batcher = make(max_memory_bytes=100, batch_timeout_micros=0)
        results([batcher.submit(some, Recorder())])
        batcher.close()
        assert len(returned) == times


# The memory that a request may take is known before it runs, and its time is limited.
TEXT = TensorSpec("text:0", np.dtype(object), (None,))
ALIGN = Signature(
    {"reference": TEXT, "text": TEXT},
    {"attention": TensorSpec("a:0", np.dtype(np.float32), (None, 3, 4, None, None))},
    {},
)
SEARCH = Signature({"text": TEXT}, {"translation": TEXT}, {})


def rows_of(count, size, *names, **options):
    text = np.full(count, b"x" * size, dtype=object)
    return Rows(count, dict.fromkeys(names, text), {k: np.array([v]) for k, v in options.items()})


def within(name, signature, rows, **limits):
    return costs.within_limits(name, signature, rows, costs.Sizes(), ServeOptions(**limits))


def test_attention_weights_that_make_too_long_an_answer_are_refused():
    pairs = rows_of(2, 98, "text", "reference")
    least = 2 * 3 * 4 * 100 * 100 * costs.WRITTEN
    within("align", ALIGN, pairs, max_response_bytes=least)
    with pytest.raises(RequestError, match="rows of 100 tokens may have"):
        within("align", ALIGN, pairs, max_response_bytes=least - 1)
    with pytest.raises(RequestError, match=r"--max_response_bytes=268,435,456\. Send fewer rows"):
        within("align", ALIGN, rows_of(1, 3960, "text", "reference"))
    # Controls: usual requests.
    within("align", ALIGN, rows_of(1, 300, "text", "reference"))
    assert within("serving_default", SEARCH, rows_of(64, 200, "text")).row_memory > 0


def test_a_wide_long_search_is_refused_and_options_beyond_the_limits_count_as_the_limits():
    with pytest.raises(RequestError, match=r"`translate` may take .* of --max_memory_bytes"):
        within("translate", SEARCH, rows_of(1, 1500, "text", beam_size=2**31 - 1, max_length=2**31))
    tasks = (rows_of(1, 9, "text", beam_size=size) for size in (32, 2**31 - 1))
    assert len({within("translate", SEARCH, rows).row_memory for rows in tasks}) == 1


def test_an_export_that_searches_wider_or_longer_needs_more_memory(tmp_path):
    def memory(**decoding):
        decoding = {"beam_size": 4, "max_length": "+50", **decoding}
        card = {"hyperparameters": {"d_model": 64}, "decoding": decoding}
        (tmp_path / "model.json").write_text(json.dumps(card))
        sizes = costs.Sizes.of(types.SimpleNamespace(folder=tmp_path, sentencepiece_models=()))
        return costs.row_memory("translate", SEARCH, rows_of(1, 9, "text"), sizes, [100])

    assert memory() == memory(max_length=150) < memory(max_length="3x") < memory(max_length="4x+9")
    assert memory(beam_size=32) < memory(beam_size=100) == memory(samples=100)
    assert memory(beam_size=1) < memory(beam_size=None) == memory()


def test_the_pieces_of_a_prefix_need_memory():
    memory = [
        within("next_pieces", SEARCH, rows_of(1, 9, "text", prefix=prefix)).row_memory
        for prefix in (b"", b"a " * 100)
    ]
    assert memory[1] - memory[0] > 3 * costs.FLOAT * 100 * costs.Sizes().vocabulary_size


def test_texts_are_counted_in_the_model_s_pieces_up_to_its_longest_text(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat sat on the mat\n" * 20)
    model = tmp_path / "model"
    sizes = {"vocab_size": 30, "minloglevel": 2, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(input=str(lines), model_prefix=str(model), **sizes)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    text = b"the cat sat on the mat"
    pieces = len(tokenizer.encode(text))
    assert pieces < len(text)
    sizes = costs.Sizes(tokenizers=(tokenizer,))
    assert sizes.tokens(text) == pieces + 2
    assert sizes.tokens(text + b" \xff<mask>") >= pieces + 4
    assert dataclasses.replace(sizes, most_tokens=3).tokens(text) == 5
    # A control: without a tokenizer each byte counts.
    assert costs.Sizes().tokens(text) == len(text) + 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 30),
        ({"grpc-timeout": "500m"}, 0.5),
        ({"grpc-timeout": "2H"}, 30),
        ({"x-envoy-expected-rq-timeout-ms": "1500"}, 1.5),
    ],
)
def test_a_client_may_ask_for_less_time(headers, seconds):
    assert transport.seconds(headers, 30000) == seconds
    with pytest.raises(RequestError, match="grpc-timeout must be a time such as 500m"):
        transport.seconds({"grpc-timeout": "soon"}, 1)
