"""Runs commands of the project as `python -m` would, without the seconds that each of them takes to
import TensorFlow.

Reads requests from standard input, JSON on a line: `module`, `arguments`, `folder` to run in, and
`stdin`. Imports what the commands import of others, once, and forks for each request a child that
runs the module; as many at a time as there are processors. Writes answers in the same order, JSON
on a line: `status`, `stdout` and `stderr`. What the commands read and write is bytes, told as
Latin-1.

Neither the modules of the commands are imported here, which `runpy` would warn of, nor is
TensorFlow's runtime started, whose threads would be missing in a child.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import sys
import tempfile

# The package is the first: it imports TensorFlow quietly.
THIRD_PARTY = (
    "keras",
    "tensorflow_text",
    "sentencepiece",
    "sentencex",
    "sacrebleu",
    "absl.app",
    "rich.console",
    "rich.progress",
)
for name in ("keras_transformer", *THIRD_PARTY):
    importlib.import_module(name)
# Collecting garbage in a child would copy all that was imported.
gc.freeze()


def become(request, files):
    """Make this process the command that is asked for, up to its exit."""
    os.chdir(request["folder"])
    for descriptor, file in enumerate(files):
        os.dup2(file.fileno(), descriptor)
    sys.stdin = os.fdopen(0, closefd=False)  # of the other, requests were read ahead
    sys.path[0] = request["folder"]
    sys.argv[1:] = request["arguments"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def contents(file):
    file.seek(0)
    return file.read().decode("latin-1")


def main():
    requests = [json.loads(line) for line in sys.stdin]
    with contextlib.ExitStack() as stack:
        files = [
            [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)] for _ in requests
        ]
        answer(requests, files)


def answer(requests, files):
    running, statuses = {}, {}

    def wait():
        process, status = os.wait()
        statuses[running.pop(process)] = os.waitstatus_to_exitcode(status)

    for number, (request, own) in enumerate(zip(requests, files, strict=True)):
        own[0].write(request["stdin"].encode("latin-1"))
        own[0].seek(0)
        if len(running) == os.cpu_count():
            wait()
        process = os.fork()
        if not process:
            # The way out of here ends the process as it ends that of a command, with its status or
            # a traceback.
            become(request, own)
            return
        running[process] = number
    while running:
        wait()
    for number, (_, stdout, stderr) in enumerate(files):
        print(
            json.dumps(
                {"status": statuses[number], "stdout": contents(stdout), "stderr": contents(stderr)}
            )
        )


main()
