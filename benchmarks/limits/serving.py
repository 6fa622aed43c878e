"""What serving costs: `python -m benchmarks.limits.serving --model_base_path=saved_models/NAME`.

The server runs in a process of its own with its default flags; clients send one sentence a request,
and the next when it is answered. Beside it, when it has ended, a fresh process calls the same
SavedModel directly (`tf.saved_model.load`), or the same ONNX graphs (`Translator.load`), on batches
of 64, all cores. Prints the time to the first translation of both, latencies and throughput for
each number of clients, and the throughput of the direct call; and fails if a served translation is
not what the direct call gives.
"""

import json
import queue
import subprocess
import sys
import threading
import time

import numpy as np
from absl import app, flags

from benchmarks.limits.sentences import LINES, MODEL, is_portable, newest_version, sentences
from benchmarks.limits.server_process import Client, running
from benchmarks.peers.turns import ROOT
from benchmarks.tables import print_table

BATCH_SIZE = 64

SENTENCES = flags.DEFINE_integer(
    "sentences", 1000, "Most of them, for many clients and for the direct call."
)
ALONE = flags.DEFINE_integer("alone", 200, "Most of them, for one client.")
CLIENTS = flags.DEFINE_list("clients", ["64"], "How many at once; several numbers: one by one.")
DIRECT = flags.DEFINE_bool(
    "direct", False, "Call the SavedModel in this very process, and print what that gave."
)


def call_directly(lines):
    """Seconds to load, to translate one sentence then, and to translate all in batches; and the
    translations.
    """
    load = load_graphs if is_portable() else load_saved_model
    began = time.perf_counter()
    translate = load(str(newest_version()))
    loaded = time.perf_counter()
    translate(lines[:1])
    first = time.perf_counter()
    translate(lines[:BATCH_SIZE])
    warm = time.perf_counter()
    batches = [lines[start : start + BATCH_SIZE] for start in range(0, len(lines), BATCH_SIZE)]
    translations = [text for batch in batches for text in translate(batch)]
    return {
        "loaded": loaded - began,
        "first": first - loaded,
        "seconds": time.perf_counter() - warm,
        "translations": translations,
    }


def load_saved_model(folder):
    """A function that translates texts."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  a SavedModel's tokenizer needs its ops

    signature = tf.saved_model.load(folder).signatures["serving_default"]
    return lambda texts: [
        text.decode() for text in signature(text=tf.constant(texts))["translation"].numpy()
    ]


def load_graphs(folder):
    """Likewise, of ONNX graphs."""
    from keras_transformer import Translator

    translator = Translator.load(folder)
    return lambda texts: translator.translate(texts, batches_at_once=2)


def direct_in_a_fresh_process():
    command = [
        sys.executable,
        "-m",
        "benchmarks.limits.serving",
        "--direct",
        f"--lines={LINES.value or ''}",
    ]
    command += [f"--{flag.name}={flag.value}" for flag in (MODEL, SENTENCES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the direct call failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def ask(server, lines, clients):
    """All lines, shared out to so many clients.

    Returns:
        Translations, the latency of each in seconds, and the seconds for all.
    """
    numbers = queue.SimpleQueue()
    for number in range(len(lines)):
        numbers.put(number)
    translations = [None] * len(lines)
    latencies = [0.0] * len(lines)

    def work():
        client = Client(server)
        while True:
            try:
                number = numbers.get_nowait()
            except queue.Empty:
                client.close()
                return
            began = time.perf_counter()
            translations[number] = client.translate(lines[number])
            latencies[number] = time.perf_counter() - began

    threads = [threading.Thread(target=work) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return translations, latencies, time.perf_counter() - began


def main(_):
    lines = sentences(SENTENCES.value)
    if DIRECT.value:
        print(json.dumps(call_directly(lines)))
        return
    several = [int(one) for one in CLIENTS.value]
    with running(MODEL.value) as server:
        _, [first], _ = ask(server, lines[:1], 1)
        ask(server, lines[:BATCH_SIZE], several[-1])
        # By themselves: with --clients=1 both are of one client.
        alone = ask(server, lines[: ALONE.value], 1)
        asked = {clients: ask(server, lines, clients) for clients in several}
        memory = server.memory()
    together = asked[several[-1]]
    print(
        f"server: process to listening {server.seconds:.1f} s, first translation "
        f"{first * 1e3:.0f} ms; {memory / 1e6:,.0f} MB; ended with {server.ended}"
    )
    direct = direct_in_a_fresh_process()
    print(
        f"direct: loading {direct['loaded']:.1f} s, first translation "
        f"{direct['first'] * 1e3:.0f} ms"
    )
    speed_of_direct = len(lines) / direct["seconds"]
    rows = [served_row(1, alone), *(served_row(one, asked[one]) for one in several)]
    rows.append([f"direct, batches of {BATCH_SIZE}", f"{speed_of_direct:.1f}", "", ""])
    print_table(["", "sentences/s", "p50 ms", "p99 ms"], rows)
    many = speed_of(together)
    print(
        f"\n{several[-1]} clients against one: {many / speed_of(alone):.1f} (goal 4); against "
        f"direct: {many / speed_of_direct:.2f} (goal 0.7)"
    )
    served = together[0]
    same = sum(map(str.__eq__, served, direct["translations"]))
    print(f"served as the direct call: {same} of {len(lines)}")
    if same != len(lines) or alone[0] != served[: ALONE.value]:
        sys.exit("DIFFERENT: a served translation is not the direct call's.")


def speed_of(asked):
    """Sentences a second, of what `ask` gave."""
    translations, _, seconds = asked
    return len(translations) / seconds


def served_row(clients, asked):
    """A line of the table, of what `ask` gave."""
    milliseconds = [f"{value:.0f}" for value in np.percentile(asked[1], [50, 99]) * 1e3]
    name = f"served, {clients} client{'s' * (clients > 1)}"
    return [name, f"{speed_of(asked):.1f}", *milliseconds]


if __name__ == "__main__":
    app.run(main)
