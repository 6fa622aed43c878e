"""What the dearest requests cost the server: `python -m benchmarks.limits.costly_requests
--translator=FOLDER --generator=FOLDER --parser=FOLDER`, folders of SavedModels' versions.

Each request is sent to a server with its default flags. Prints its status, the bytes of its answer,
the seconds to it, the longest that a small request and `/health` waited meanwhile, and the peak of
memory above the loaded model. Then the requests whose client leaves after two seconds: the
processor's seconds in the next quarter of a second and in the second after it, and the memory
before, at leaving and 2.5 s later. Fails if `/health` or a small request took more than a second.
"""

import json
import os
import pathlib
import socket
import sys
import threading
import time

from absl import app, flags

from benchmarks.limits.request_memory import Asked
from benchmarks.limits.server_process import HOST, Client, running
from benchmarks.tables import print_table

LATE = 1.0
FOR_EVER = 2**31 - 1
TICKS = os.sysconf("SC_CLK_TCK")

TRANSLATOR = flags.DEFINE_string("translator", None, "Versions of a translator.")
GENERATOR = flags.DEFINE_string("generator", None, "Versions of a language model.")
PARSER = flags.DEFINE_string("parser", None, "Versions of a parser.")

ALIGN = {"text": "word " * 792, "reference": "Wort " * 792}
REQUESTS = {
    "translator": [
        ("align, one row, 2 x 3,960 bytes", "align", [ALIGN]),
        ("align, four such rows", "align", [ALIGN] * 4),
        ("translate, 64 rows of 3,300 bytes", "translate", [{"text": "a word and " * 300}] * 64),
    ],
    "generator": [
        ("attend, 16 rows of 4,880 bytes", "attend", [{"text": "a word or " * 488}] * 16),
        (
            "sample, 64 rows, max_length 2^31-1",
            "sample",
            [{"text": "once upon", "max_length": FOR_EVER}] * 64,
        ),
    ],
    "parser": [
        (
            "one row of 300 words, beam_size and max_length 2^31-1",
            "translate",
            [{"text": "word " * 300, "beam_size": FOR_EVER, "max_length": FOR_EVER}],
        )
    ],
}
LEFT = [
    (
        "translate, 600 bytes, beam_size 32, max_length 2,000",
        "translate",
        [{"text": "a word " * 86, "beam_size": 32, "max_length": 2000}],
    ),
    ("translate, 64 rows of 3,300 bytes", "translate", [{"text": "a word and " * 300}] * 64),
]


def body_of(signature, rows):
    return json.dumps({"signature_name": signature, "instances": rows}).encode()


class Meanwhile:
    """Asks for `/health` and for a short text until it is told to stop; keeps the longest waits."""

    def __init__(self, server):
        self._server = server
        self._over = threading.Event()
        self.health = 0.0
        self.small = 0.0
        self._threads = [
            threading.Thread(target=work) for work in (self._ask_health, self._ask_little)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask_health(self):
        asked = Asked(self._server)
        while not self._over.wait(0.05):
            began = time.perf_counter()
            asked.get("/health")
            self.health = max(self.health, time.perf_counter() - began)

    def _ask_little(self):
        client = Client(self._server)
        while not self._over.wait(0.05):
            began = time.perf_counter()
            client.post(json.dumps({"instances": ["a word"]}).encode())
            self.small = max(self.small, time.perf_counter() - began)
        client.close()


def answered(server, signature, rows):
    """A request's cost, and whether others waited too long meanwhile."""
    asked = Asked(server)
    with Meanwhile(server) as meanwhile:
        [status], peak, seconds, size = asked.ask([body_of(signature, rows)])
    numbers = [status, f"{size:,}", f"{seconds:.2f}", f"{meanwhile.small:.2f}"]
    numbers += [f"{meanwhile.health:.2f}", f"{peak / 1e6:.0f}"]
    return numbers, max(meanwhile.small, meanwhile.health) > LATE


def processor_seconds(server):
    fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def left(server, signature, rows):
    """What a server does and holds when a client leaves after two seconds."""
    body = body_of(signature, rows)
    head = f"POST /v1/models/{server.name}:predict HTTP/1.1\r\nHost: x\r\nContent-Length: "
    memory = [server.memory()]
    with socket.create_connection((HOST, server.port)) as connection:
        connection.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
        time.sleep(2)
        memory.append(server.memory())
    used = [processor_seconds(server)]
    for seconds in (0.25, 1.0, 1.25):
        time.sleep(seconds)
        used.append(processor_seconds(server))
    memory.append(server.memory())
    told = [f"{used[1] - used[0]:.2f}", f"{used[2] - used[1]:.2f}"]
    return told + [f"{one / 1e6:.0f}" for one in memory]


def main(_):
    folders = {"translator": TRANSLATOR.value, "generator": GENERATOR.value, "parser": PARSER.value}
    rows, rows_of_left, late = [], [], []
    for kind, folder in folders.items():
        if not folder:
            continue
        with running(folder) as server:
            client = Client(server)
            client.post(json.dumps({"instances": ["a word"]}).encode())
            client.close()
            for title, signature, request in REQUESTS[kind]:
                numbers, is_late = answered(server, signature, request)
                rows.append([kind, title, *numbers])
                late += [title] * is_late
            if kind == "translator":
                rows_of_left = [[title, *left(server, *request)] for title, *request in LEFT]
    columns = ["model", "request", "status", "bytes", "s", "small s", "/health s", "MB above"]
    print_table(columns, rows)
    columns = [
        "left after 2 s",
        "cpu s in 0.25 s",
        "in 1 s then",
        "MB",
        "at leaving",
        "2.5 s later",
    ]
    print_table(columns, rows_of_left)
    if late:
        sys.exit(f"WRONG: others waited more than {LATE:g} s for {', '.join(late)}")


if __name__ == "__main__":
    app.run(main)
