"""The project's commands, as users type them, in a folder."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(__file__).with_name("warm_program.py")


class WarmProgram:
    """A process that has imported TensorFlow, and forks for each command that is asked of it."""

    def __init__(self):
        self.requests, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, PROGRAM, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def run(self, module, arguments, folder, streams):
        """The exit status of `python -m module`; `streams` are files: input, output and errors."""
        ours, theirs = socket.socketpair()
        request = {"module": module, "arguments": arguments, "folder": str(folder)}
        with ours:
            with theirs:
                socket.send_fds(self.requests, [b"r"], [theirs.fileno()])
            descriptors = [stream.fileno() for stream in streams]
            socket.send_fds(ours, [json.dumps(request).encode()], descriptors)
            return int(ours.recv(100))

    def close(self):
        self.requests.close()
        self.process.wait()


class Shell:
    """Runs the project's commands in a folder.

    A call forks the command from a `WarmProgram`; `process` and `start` take a new process, for
    what depends on one: signals, pipes, the environment, and what a command imports.
    """

    def __init__(self, folder, warm):
        self.folder = pathlib.Path(folder)
        self.warm = warm

    def __call__(self, name, *flags, stdin=b""):
        return self._forked(f"keras_transformer.{name}", flags, stdin)

    def program(self, text, *arguments):
        """Run a program in Python as if it were a command."""
        (self.folder / "program.py").write_text(text)
        return self._forked("program", arguments)

    def _forked(self, module, arguments, stdin=b""):
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            streams[0].write(stdin)
            streams[0].seek(0)
            status = self.warm.run(module, arguments, self.folder, streams)
            outputs = map(contents, streams[1:])
            return subprocess.CompletedProcess((module, *arguments), status, *outputs)

    def run(self, name, *flags, stdin=b""):
        """Run a command that must succeed; return the completed process."""
        answer = self(name, *flags, stdin=stdin)
        assert answer.returncode == 0, answer.stderr.decode()
        return answer

    def all(self, commands):
        """Run several commands, each a name and its flags, some at a time; return all results."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda command: self(*command), commands))

    def command(self, name, *flags):
        return [sys.executable, "-m", f"keras_transformer.{name}", *flags]

    def process(self, name, *flags, stdin=b""):
        """Run a command in a new process; return the completed process."""
        return subprocess.run(
            self.command(name, *flags),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            check=False,
        )

    def start(self, name, *flags, **environment):
        """Start a command in a new process, with variables added to its environment."""
        pipe = subprocess.PIPE
        # Unbuffered, so that `communicate` gives what `read_until` left.
        return subprocess.Popen(
            self.command(name, *flags),
            cwd=self.folder,
            env=os.environ | environment,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
        )

    def another(self, name):
        """A `Shell` in a folder inside this one's."""
        (self.folder / name).mkdir(exist_ok=True)
        return Shell(self.folder / name, self.warm)

    def copy(self, folder):
        """A `Shell` in a copy of this one's folder, for what writes into it."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Shell(folder, self.warm)


def printed(*command, **options):
    """Return what a program prints, which must succeed."""
    process = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **options)
    assert process.returncode == 0, process.stderr
    return process.stdout


def contents(file):
    file.seek(0)
    return file.read()


def read_until(process, words):
    """The output of a process up to a line with these words."""
    read = b""
    for line in process.stdout:
        read += line
        if words in line:
            return read
    raise AssertionError((read + process.stderr.read()).decode())


def tf_configs(count):
    """`TF_CONFIG` of each of so many workers, on ports that are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        addresses = ["{}:{}".format(*listener.getsockname()) for listener in sockets]
    return [
        json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
        for index in range(count)
    ]


FORBIDDING = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text", "keras", "jax", "torch"):
            raise ImportError(f"{name} is forbidden here")

sys.meta_path.insert(0, Forbidden())
from keras_transformer import COMMAND, flags

flags.run(COMMAND.main, COMMAND.SECTIONS)
"""


def without_tensorflow(name, *flags):
    """The words of such a command."""
    return [sys.executable, "-c", FORBIDDING.replace("COMMAND", name), *flags]


def wait_until(condition, seconds=60):
    """Return once a condition holds; fail if it does not within that time, instead of hanging."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(0.001)
