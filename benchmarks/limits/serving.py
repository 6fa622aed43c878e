"""What serving costs: `python -m benchmarks.limits.serving --model_base_path=saved_models/NAME`.

The server runs in a process of its own with its default flags; clients send one sentence a request,
and the next when it is answered. When it has ended, this process translates by the same SavedModel
or graphs (`Translator.load`), in batches of 64. Prints the time to the first translation of both,
latencies and throughput for each number of clients, and the throughput of the direct call; and
fails if a served translation is not what the direct call gives.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from absl import app, flags

from benchmarks.limits.server import MODEL, Client, newest_version, running, sentences
from benchmarks.tables import print_table

BATCH_SIZE = 64

SENTENCES = flags.DEFINE_integer(
    "sentences", 1000, "Most of them, for many clients and for the direct call."
)
ALONE = flags.DEFINE_integer("alone", 200, "Most of them, for one client.")
CLIENTS = flags.DEFINE_list("clients", ["1", "64"], "How many at once, one by one.")


def call_directly(lines):
    """Seconds to load, to translate one sentence then, and to translate all in batches; and the
    translations.
    """
    began = time.perf_counter()
    from keras_transformer import Translator
    from keras_transformer.startup import spread_over_cores

    at_once = spread_over_cores()
    translator = Translator.load(newest_version())
    loaded = time.perf_counter()
    translator.translate(lines[:1])
    first = time.perf_counter()
    translator.translate(lines[:BATCH_SIZE], batches_at_once=at_once)
    warm = time.perf_counter()
    batches = [lines[start : start + BATCH_SIZE] for start in range(0, len(lines), BATCH_SIZE)]
    translations = [
        text for batch in batches for text in translator.translate(batch, batches_at_once=at_once)
    ]
    return {
        "loaded": loaded - began,
        "first": first - loaded,
        "seconds": time.perf_counter() - warm,
        "translations": translations,
    }


def ask(server, lines, clients):
    """Translate all lines, divided among this many clients.

    Returns:
        Translations, the latency of each in seconds, and the seconds for all.
    """
    numbers = iter(range(len(lines)))
    results = [None] * len(lines)

    def work(_):
        with Client(server) as client:
            # `next` of an iterator of numbers is atomic.
            for number in numbers:
                began = time.perf_counter()
                translation = client.translate(lines[number])
                results[number] = (translation, time.perf_counter() - began)

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    seconds = time.perf_counter() - began
    return *map(list, zip(*results, strict=True)), seconds


def main(_):
    lines = sentences(SENTENCES.value)
    with running(MODEL.value) as server:
        _, [first], _ = ask(server, lines[:1], 1)
        ask(server, lines[:BATCH_SIZE], BATCH_SIZE)
        results = {
            clients: ask(server, lines[: ALONE.value] if clients == 1 else lines, clients)
            for clients in map(int, CLIENTS.value)
        }
        memory = server.memory()
    direct = call_directly(lines)
    print(
        f"server: process to listening {server.seconds:.1f} s, first translation "
        f"{first * 1e3:.0f} ms; {memory / 1e6:,.0f} MB; ended with {server.ended}\ndirect: loading "
        f"{direct['loaded']:.1f} s, first translation {direct['first'] * 1e3:.0f} ms"
    )
    rows = [served_row(clients, *result) for clients, result in results.items()]
    speed_of_direct = f"{len(lines) / direct['seconds']:.1f}"
    rows.append([f"direct, batches of {BATCH_SIZE}", speed_of_direct, "", ""])
    print_table(["", "sentences/s", "p50 ms", "p99 ms"], rows)
    for clients, (served, *_) in results.items():
        if served != direct["translations"][: len(served)]:
            sys.exit(f"DIFFERENT: what {clients} clients were served is not the direct call's.")


def served_row(clients, translations, latencies, seconds):
    """A row of the table, from the results of `ask`."""
    milliseconds = [f"{value:.0f}" for value in np.percentile(latencies, [50, 99]) * 1e3]
    name = f"served, {clients} client{'s' * (clients > 1)}"
    return [name, f"{len(translations) / seconds:.1f}", *milliseconds]


if __name__ == "__main__":
    app.run(main)
