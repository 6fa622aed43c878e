"""The server as a process of its own, and clients of it, on this machine only. Standard library
only.
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

from benchmarks.peers.turns import ROOT

HOST = "127.0.0.1"


class Server:
    """A running server.

    Args:
        folder: of the model's versions.

    Attributes:
        port: where it listens.
        pid: of its process.
        seconds: from the start of its process until it listened.
        ended: its exit status, after `running` is left.
    """

    name = "benchmarked"

    def __init__(self, folder):
        began = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "keras_transformer.serve",
            f"--model_base_path={pathlib.Path(folder).resolve()}",
        ]
        command += [f"--model_name={self.name}", "--rest_api_port=0"]
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
        self.pid = self._process.pid
        # A pipe that nobody reads would stop the server.
        self._reader = threading.Thread(target=lambda: self._log.writelines(self._process.stderr))
        self._reader.start()

    def log(self):
        """What it has logged, objects; to be called when it has ended."""
        self._log.seek(0)
        return [json.loads(line) for line in self._log]

    def memory(self):
        """Its resident memory in bytes."""
        [line] = [
            line
            for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
            if line.startswith("VmRSS:")
        ]
        return int(line.split()[1]) * 1024

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


class Client:
    """One connection to a server, kept open.

    Args:
        server: a `Server`.
    """

    def __init__(self, server):
        self._connection = http.client.HTTPConnection(HOST, server.port, timeout=600)
        self._path = f"/v1/models/{server.name}:predict"

    def post(self, body):
        """Status and parsed answer; `body` is bytes."""
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def translate(self, text):
        """The translation of a text."""
        status, answer = self.post(json.dumps({"instances": [text]}).encode())
        if status != 200:
            raise SystemExit(f"a good request was answered with {status}: {answer}")
        return answer["predictions"][0]

    def close(self):
        self._connection.close()
