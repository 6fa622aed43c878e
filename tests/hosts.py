"""Several hosts that are processes of this machine."""

import contextlib
import json
import socket


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
