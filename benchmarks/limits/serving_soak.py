"""A server under mixed load while its model is replaced: `python -m benchmarks.limits.serving_soak
--seconds=300` (`make soak_serving`).

Clients send good requests, one after the other, whose right answers were asked for before; others
send requests that are empty, huge, cut off, no JSON or of wrong types, and hang up in the middle.
--stalling clients connect, send nothing or a part of a request, and wait. --leaving clients send a
big request; half of them leave within its body, half of them while it is worked on, and they come
again. Every --swap_seconds the model is copied to the next version, under a temporary name first.

Fails if a good request is not answered, not right, or 1 % of them later than after a second; if
`/health` takes more than a second; if a bad request is answered with anything but its 4xx; if a
new version is not served, or the server does not end with 0; or if its memory under the load grows
by more than 5 % from after the third new version to the end.
"""

import collections
import contextlib
import itertools
import json
import os
import pathlib
import selectors
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

from absl import app, flags

from benchmarks.limits.server import HOST, Client, newest_version, running, sentences

MOST_GROWTH = 0.05
# New versions until the memory is what it will be: the first ones fill what the allocators keep.
WARM_UP = 3
# Readings of the memory, one a second, at the beginning and at the end.
READINGS = 10
# Seconds after which an answer is late.
LATE = 1.0
# The head of a request with a body of so many bytes.
HEAD = b"POST /v1/models/benchmarked:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
# Each row may take a good part of what --max_memory_bytes allows.
BIG = json.dumps({"instances": ["a word and " * 300] * 64}).encode()

SENTENCES = flags.DEFINE_integer("sentences", 200, "Most of them.")
SECONDS = flags.DEFINE_float("seconds", 300.0, "How long.")
SWAP_SECONDS = flags.DEFINE_float("swap_seconds", 30.0, "Between two versions.")
CLIENTS = flags.DEFINE_integer("clients", 8, "With good requests.")
STALLING = flags.DEFINE_integer("stalling", 500, "Clients that connect and stall.")
LEAVING = flags.DEFINE_integer("leaving", 64, "Clients that leave half way of a big request.")

# Bodies that are refused with 400; a longer one than a server reads with 413.
BAD = (
    *(b"", b"not json", b'{"instances": ["a"', b'{"instances": []}', b'{"instances": [1]}'),
    b'{"instances": [{"txet": "a"}]}',
    b'{"signature_name": 7, "instances": ["a"]}',
    b'{"signature_name": "none", "instances": ["a"]}',
    *(b"\xff\xfe", b"[" * 100_000),
    json.dumps({"instances": ["word " * 10_000]}).encode(),
    json.dumps({"instances": ["a"] * 10_000}).encode(),
    b" " * (2**20 + 1),
)


class Load:
    """Threads that send requests until `stop` is called.

    Args:
        server: a `Server`.
        pairs: good sentences with their translations.

    Attributes:
        counts: how many requests of each kind were answered as they should be.
        wrong: what went wrong, in words.
        seconds: of each good request.
        health: seconds of each `/health`.
    """

    def __init__(self, server, pairs):
        self._server = server
        self._pairs = pairs
        self._stop = threading.Event()
        self.counts = collections.Counter()
        self.wrong = []
        self.seconds = []
        self.health = []
        works = [self._ask_well] * CLIENTS.value
        works += [self._ask_badly, self._hang_up, self._ask_health, self._stall, self._leave]
        self._threads = [
            threading.Thread(target=self._run, args=(work, number))
            for number, work in enumerate(works)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work, number):
        try:
            work(number)
        except BaseException as error:  # of a thread: it would be lost
            self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")

    def _ask_well(self, number):
        pairs = itertools.islice(itertools.cycle(self._pairs), number * 7, None)
        with Client(self._server) as client:
            while not self._stop.is_set():
                line, expected = next(pairs)
                began = time.monotonic()
                status, answer = client.post(json.dumps({"instances": [line]}).encode())
                self.seconds.append(time.monotonic() - began)
                if status != 200:
                    self.counts[f"lost, {status}"] += 1
                    self.wrong.append(f"a good request was answered with {status}: {answer}")
                elif answer["predictions"] != [expected]:
                    self.wrong.append(f"{line!r} became {answer} instead of {expected!r}")
                self.counts["good"] += 1

    def _ask_badly(self, _):
        for body in itertools.cycle(BAD):
            refusal = 413 if len(body) > 2**20 else 400
            try:
                with Client(self._server) as client:
                    status, answer = client.post(body)
            except (BrokenPipeError, ConnectionResetError):
                # The server hangs up on a body that it has refused to read.
                status = 413
                answer = {"error": ""}
            if status != refusal or answer.keys() != {"error"}:
                difference = f"was answered with {status} {answer}, and not with {refusal}"
                self.wrong.append(f"{body[:50]!r} {difference}")
            self.counts[f"bad, {status}"] += 1
            if self._stop.wait(0.05):
                return

    def _hang_up(self, _):
        head = HEAD % 30
        bodies = (b'{"instances": ', b'{"instances": ["a b c d e f"]}')
        for sent in itertools.cycle([b"", b"POST", head, *(head + body for body in bodies)]):
            with self._connected(sent) as connection:
                connection.shutdown(socket.SHUT_WR)
            self.counts["hung up"] += 1
            if self._stop.wait(0.1):
                return

    def _ask_health(self, _):
        with Client(self._server) as client:
            while not self._stop.wait(0.1):
                began = time.monotonic()
                if not client.is_healthy():
                    self.wrong.append("/health was not answered with 200")
                self.health.append(time.monotonic() - began)

    def _stall(self, _):
        head = HEAD % len(BIG)
        parts = [b"", head[:20], head, head + BIG[: len(BIG) // 2]]
        with selectors.DefaultSelector() as waiting, contextlib.ExitStack() as opened:

            def stall(sent):
                connection = opened.enter_context(self._connected(sent))
                waiting.register(connection, selectors.EVENT_READ, sent)

            for number in range(STALLING.value):
                stall(parts[number % len(parts)])
            while not self._stop.wait(0.1):
                # Connections that the server has closed are opened again.
                for key, _ in waiting.select(0):
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()
                    stall(key.data)
                    self.counts["stalled, given up"] += 1

    def _leave(self, _):
        head = HEAD % len(BIG)
        while not self._stop.is_set():
            with contextlib.ExitStack() as opened:
                for number in range(LEAVING.value):
                    sent = BIG if number % 2 else BIG[: len(BIG) // 2]
                    opened.enter_context(self._connected(head + sent))
                # Some of the work has begun.
                self._stop.wait(1)
            self.counts["left"] += LEAVING.value

    @contextlib.contextmanager
    def _connected(self, sent):
        with socket.create_connection((HOST, self._server.port)) as connection:
            connection.sendall(sent)
            yield connection


def next_version(folder):
    """Copy the newest version to the next number; of the old ones keep the last."""
    numbers = sorted(int(path.name) for path in folder.glob("[0-9]*"))
    temporary = folder / f".{numbers[-1] + 1}.tmp"
    shutil.copytree(folder / str(numbers[-1]), temporary)
    os.rename(temporary, folder / str(numbers[-1] + 1))
    for number in numbers[:-1]:
        shutil.rmtree(folder / str(number))
    return numbers[-1] + 1


def watch(server, folder, load):
    """Replace versions and read the memory until the time is over.

    Returns:
        The last version, and the memory in bytes, second by second, after the warm-up.
    """
    began = swapped = time.monotonic()
    memory = []
    version = 1
    while time.monotonic() - began < SECONDS.value:
        time.sleep(1)
        memory.append(server.memory())
        if time.monotonic() - swapped > SWAP_SECONDS.value:
            if version <= WARM_UP:
                memory.clear()
            swapped = time.monotonic()
            version = next_version(folder)
            status = f"{swapped - began:4.0f} s  version {version}  {server.memory() / 1e6:.0f} MB"
            print(f"{status}  {dict(load.counts)}", flush=True)
    return version, memory


def judge_memory(version, memory):
    """Print how the memory grew. Returns what is wrong with it, in words."""
    if version <= WARM_UP + 1 or len(memory) < 2 * READINGS:
        needed = f"{WARM_UP} new versions, and {2 * READINGS} seconds after them"
        print(f"memory was not judged: that takes more than {needed}")
        return []
    first = statistics.median(memory[:READINGS])
    last = statistics.median(memory[-READINGS:])
    growth = last / first - 1
    print(f"memory {first / 1e6:.0f} -> {last / 1e6:.0f} MB, {growth:+.1%}")
    return [f"memory grew by {growth:.1%}"] if growth > MOST_GROWTH else []


def judge_times(load):
    """Print how long answers took. Returns what is wrong with it, in words."""
    late = sum(seconds > LATE for seconds in load.seconds)
    p99 = statistics.quantiles(load.seconds, n=100)[-1]
    lost = sum(count for kind, count in load.counts.items() if kind.startswith("lost"))
    print(
        f"{len(load.seconds)} good requests: {lost} answers lost, {late} later than {LATE:g} s, "
        f"median {statistics.median(load.seconds):.2f} s, p99 {p99:.2f} s, worst "
        f"{max(load.seconds):.2f} s\n/health {len(load.health)} times: worst "
        f"{max(load.health):.2f} s"
    )
    wrong = [f"1 % of the good requests took more than {p99:.2f} s"] if p99 > LATE else []
    return wrong + ([f"/health took {max(load.health):.2f} s"] if max(load.health) > LATE else [])


def main(_):
    lines = sentences(SENTENCES.value)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        shutil.copytree(newest_version(), folder / "1")
        with running(folder) as server:
            with Client(server) as client:
                pairs = [(line, client.translate(line)) for line in lines]
            load = Load(server, pairs)
            version, memory = watch(server, folder, load)
            load.stop()
            print(f"memory under the load at most {max(memory) / 1e6:.0f} MB")
    states = ("available", "unloaded", "broken", "failed")
    events = [line for line in server.log() if line["event"] in states]
    available = [line["version"] for line in events if line["event"] == "available"]
    print(f"{dict(load.counts)}\nversions served: {len(available)}")
    load.wrong += judge_times(load) + judge_memory(version, memory)
    failed = any(line["event"] in ("broken", "failed") for line in events)
    if server.ended or failed or available[-1] < version - 1:
        load.wrong.append(f"the server ended with {server.ended}, and logged {events[-5:]}")
    if load.wrong:
        sys.exit("WRONG:\n" + "\n".join(load.wrong[:10]))


if __name__ == "__main__":
    app.run(main)
