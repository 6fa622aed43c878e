"""Runs commands of the project as `python -m` would, without the seconds that each of them takes to
import TensorFlow.

Called with the descriptor of a Unix socket. Imports what the commands import, once, and forks for
each request a child that becomes the command: its exit status, its output, its signals and its
state are those of a process of its own. A request is a socket, sent over that one. What comes over
it is JSON (`module`, `arguments`, and `folder` to run in) with the descriptors that become standard
input, output and error; what goes back is the exit status in digits. The program ends when its
socket is closed.

Neither the modules of the commands are imported here, which `runpy` would warn of, nor is
TensorFlow's runtime started, whose threads would be missing in a child.
"""

import atexit
import gc
import importlib
import json
import os
import pathlib
import runpy
import signal
import socket
import sys

THIRD_PARTY = (
    *("keras", "tensorflow_text", "sentencepiece", "sentencex", "sacrebleu", "absl.app"),
    *("rich.console", "rich.progress"),
)
# They import nearly all that commands do with models.
OURS = (
    *("keras_transformer.tasks.translation.task", "keras_transformer.inference.translator"),
    *("keras_transformer.runs.run", "keras_transformer.saved_models.write"),
)
LONGEST_REQUEST = 2**20
# Exit status of a command that has come to its end.
ENDED = []


def leave():
    """End as Python ends, but for the last: freeing all that was imported takes longer (measured:
    0.28 s) than most commands.
    """
    if ENDED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ENDED[0])


def preload():
    """Import what takes long."""
    importlib.import_module("keras_transformer.startup").start_tensorflow()
    for name in THIRD_PARTY + OURS:
        importlib.import_module(name)
    # Collecting garbage in a child would copy all that was imported.
    gc.freeze()
    gc.set_threshold(50_000, 20, 10)


def serve(requests):
    """Answer each request in a process of its own, until the socket is closed.

    Returns:
        None; but in a child that has to become a command, the request.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for those that answer.
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
        if not message:
            return None
        if not os.fork():
            requests.close()
            return answer(socket.socket(fileno=descriptors[0]))
        os.close(descriptors[0])


def answer(connection):
    """Fork the command and tell its exit status; return the request in the fork."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 3)
    child = os.fork()
    if not child:
        connection.close()
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
            os.close(stream)
        return json.loads(request)
    _, status = os.waitpid(child, 0)
    connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def become(module, arguments, folder):
    """Make this process the command that is asked for, up to its exit."""
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv[1:] = arguments
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        ENDED.append(0)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            ENDED.append(end.code or 0)
        raise


if __name__ == "__main__":
    # Registered first, it is called last.
    atexit.register(leave)
    # This folder has one of the name of a package of ours.
    sys.path[0] = str(pathlib.Path(__file__).parents[1])
    preload()
    # The way out of here ends the process as it ends that of a command, with its status or a
    # traceback.
    if request := serve(socket.socket(fileno=int(sys.argv[1]))):
        become(**request)
