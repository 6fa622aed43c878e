"""The most memory that one request, or four at once, may make a server take:
`python -m benchmarks.limits.request_memory FOLDER...`, folders of SavedModels' versions.

For each signature of each model, requests of 1, 4, 16 and 64 rows are sent, whose texts have up to
as many bytes as `serve` takes; searches ask for the widest beam and the longest result too. The
requests that the server answers are sent alone, the one that took most four times at once. Prints
the peak of the process' resident memory above that of the loaded model (`VmHWM`, set back before
each request), its seconds, and how many requests were refused with 400, or with 413 for their size.
Fails if a peak is above what `--max_memory_bytes` says, or an answer is a 5xx other than the
deadline's 504.
"""

import base64
import concurrent.futures
import http.client
import io
import json
import pathlib
import sys
import time

import numpy as np
from absl import app, flags
from PIL import Image

from benchmarks.limits.server_process import HOST, running
from benchmarks.tables import print_table

ROWS = (64, 16, 4, 1)
# Bytes of a text, from the longest that is taken.
LENGTHS = (4992, 1248, 312)
OPTIONS = ({}, {"beam_size": 32, "max_length": 2**31 - 1})
AT_ONCE = 4
MOST = 2 * 2**30

WORD = flags.DEFINE_string("word", "abcdefg ", "Texts are made of it.")
SIDE = flags.DEFINE_integer("side", 8, "Height and width of the pictures that a model takes.")
CHANNELS = flags.DEFINE_integer("channels", 1, "Channels of these pictures.")


class Asked:
    """A server's model, and what requests make its process take.

    Args:
        server: a `Server`.
    """

    def __init__(self, server):
        self._server = server
        self.idle = server.memory()

    def signatures(self):
        """The required inputs of each signature, by name, and the names of all its inputs."""
        definition = self.get(f"/v1/models/{self._server.name}/metadata")
        signatures = definition["metadata"]["signature_def"]["signature_def"]
        return {
            name: {key: one["dtype"] for key, one in signature["inputs"].items()}
            for name, signature in signatures.items()
        }

    def ask(self, bodies):
        """Statuses of requests at once, the peak above the loaded model, seconds, and the bytes of
        all answers.
        """
        pathlib.Path(f"/proc/{self._server.pid}/clear_refs").write_text("5")
        began = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(self._post, bodies))
        seconds = time.perf_counter() - began
        statuses = [status for status, _ in answers]
        return statuses, self._peak() - self.idle, seconds, sum(size for _, size in answers)

    def _peak(self):
        status = pathlib.Path(f"/proc/{self._server.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def get(self, path):
        """The answer to a GET, from JSON."""
        connection = http.client.HTTPConnection(HOST, self._server.port, timeout=600)
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())

    def _post(self, body):
        connection = http.client.HTTPConnection(HOST, self._server.port, timeout=600)
        path = f"/v1/models/{self._server.name}:predict"
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, len(response.read())


def pixels():
    """A picture (H, W, C) of bytes."""
    shape = (SIDE.value, SIDE.value, CHANNELS.value)
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


def png():
    """It as a PNG, base64."""
    file = io.BytesIO()
    Image.fromarray(pixels().squeeze()).save(file, "PNG")
    return {"b64": base64.b64encode(file.getvalue()).decode()}


def requests_of(name, inputs):
    """Bodies of a signature, from the largest to the smallest."""
    if "png" in inputs or "picture" in inputs:
        row = {"png": png()} if "png" in inputs else {"picture": (pixels() / 255).tolist()}
        for rows in ROWS:
            yield json.dumps({"signature_name": name, "instances": [row] * rows}).encode()
        return
    texts = [key for key, dtype in inputs.items() if dtype == "DT_STRING" and key != "max_length"]
    for options in OPTIONS if "beam_size" in inputs else OPTIONS[:1]:
        kept = {key: value for key, value in options.items() if key in inputs}
        for rows in ROWS:
            for length in LENGTHS:
                row = dict.fromkeys(texts, (WORD.value * 1000)[:length]) | kept
                yield json.dumps({"signature_name": name, "instances": [row] * rows}).encode()


def row_of(task, name, asked, inputs):
    """A row of the table, and what is wrong."""
    refused = 0
    worst = (0, 0.0, None)
    wrong = []
    for body in requests_of(name, inputs):
        [status], peak, seconds, _ = asked.ask([body])
        refused += status in (400, 413)
        if status in (200, 504):
            worst = max(worst, (peak, seconds, body), key=lambda one: one[0])
        elif status not in (400, 413):
            wrong.append(f"{task} {name}: {status} for {body[:200]}")
    peak, seconds, body = worst
    together, long = (0, 0.0)
    if body:
        statuses, together, long, _ = asked.ask([body] * AT_ONCE)
        wrong += [f"{task} {name}: {status}" for status in statuses if status not in (200, 504)]
    if max(peak, together) > MOST:
        wrong.append(f"{task} {name}: {max(peak, together):,} bytes above the model")
    numbers = [f"{peak / 1e6:.0f}", f"{seconds:.1f}", f"{together / 1e6:.0f}", f"{long:.1f}"]
    return [task, name, *numbers, str(refused)], wrong


def main(arguments):
    rows = []
    wrong = []
    for folder in map(pathlib.Path, arguments[1:]):
        with running(folder) as server:
            asked = Asked(server)
            for name, inputs in asked.signatures().items():
                row, faults = row_of(folder.name, name, asked, inputs)
                print(*row, flush=True)
                rows.append(row)
                wrong += faults
    columns = ["model", "signature", "MB", "s", f"MB of {AT_ONCE}", "s", "refused"]
    print_table(columns, rows)
    if wrong:
        sys.exit("WRONG:\n" + "\n".join(wrong))


if __name__ == "__main__":
    app.run(main)
