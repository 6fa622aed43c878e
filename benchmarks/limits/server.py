"""The server as a process of its own, its clients on this machine, the model that it serves and the
sentences that it translates.
"""

import contextlib
import http.client
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from absl import flags

from benchmarks.peers.turns import ROOT
from keras_transformer.saved_models import versions

MODEL = flags.DEFINE_string(
    "model_base_path", "saved_models/home_assistant_en_de", "Folder of a SavedModel's versions."
)
LINES = flags.DEFINE_string("lines", None, "File of sentences. Default: the model's test split.")
HOST = "127.0.0.1"


def newest_version():
    """The folder of the model's newest version, a SavedModel or graphs of ONNX or LiteRT."""
    return versions.newest_version(MODEL.value)


def sentences(most):
    """The first `most` lines of the file, or the first sources of the model's test split."""
    if LINES.value:
        return pathlib.Path(LINES.value).read_text(encoding="utf-8").splitlines()[:most]
    from pipelines import corpora

    description = json.loads((newest_version() / "model.json").read_text(encoding="utf-8"))
    return list(corpora.load(**description["corpus"]).test.sources[:most])


class Server:
    """A running server.

    Args:
        folder: of the model's versions.

    Attributes:
        port: where it listens.
        seconds: from the start of its process until it listened.
        ended: its exit status, after `running` is left.
    """

    name = "benchmarked"

    def __init__(self, folder):
        began = time.monotonic()
        command = [sys.executable, "-m", "keras_transformer.serve", "--rest_api_port=0"]
        command += [f"--model_base_path={pathlib.Path(folder).resolve()}"]
        command += [f"--model_name={self.name}"]
        self._process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  as long as the server
        for line in self._process.stderr:
            self._log.write(line)
            if '"event": "serving"' in line:
                break
        else:
            raise SystemExit(
                f"the server did not start: {line if self._log.tell() else self._process.wait()}"
            )
        self.seconds = time.monotonic() - began
        self.port = int(json.loads(line)["url"].rpartition(":")[2])
        # A pipe that nobody reads would stop the server.
        self._reader = threading.Thread(target=lambda: self._log.writelines(self._process.stderr))
        self._reader.start()

    def log(self):
        """What it has logged, objects; to be called when it has ended."""
        self._log.seek(0)
        return [json.loads(line) for line in self._log]

    def memory(self):
        """Its resident memory in bytes."""
        status = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def stop(self):
        """End it by SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        self.ended = self._process.wait()
        self._reader.join()


@contextlib.contextmanager
def running(folder):
    """A `Server` that ends with the block."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()


class Client(contextlib.AbstractContextManager):
    """One connection to a server, kept open until the block ends.

    Args:
        server: a `Server`.
    """

    def __init__(self, server):
        self._connection = http.client.HTTPConnection(HOST, server.port, timeout=600)
        self._path = f"/v1/models/{server.name}:predict"

    def __exit__(self, *_):
        self._connection.close()

    def post(self, body):
        """Status and parsed answer; `body` is bytes."""
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def is_healthy(self):
        """Ask for `/health`."""
        self._connection.request("GET", "/health")
        response = self._connection.getresponse()
        response.read()
        return response.status == 200

    def translate(self, text):
        """The translation of a text."""
        status, answer = self.post(json.dumps({"instances": [text]}).encode())
        if status != 200:
            raise SystemExit(f"a good request was answered with {status}: {answer}")
        return answer["predictions"][0]
