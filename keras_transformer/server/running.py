"""Run the server: bind a port, load the model and answer requests; on SIGTERM finish them."""

import contextlib
import errno
import gc
import os
import pathlib
import signal
import socket
import sys
import time
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from keras_transformer.server import app, monitoring, transport
from keras_transformer.server.batcher import Batcher
from keras_transformer.server.options import ServeOptions, Vertex
from keras_transformer.server.served_versions import Versions
from keras_transformer.server.service import Service
from pipelines.glossary import read_terms

# A client that reads nothing of its answer for so long is disconnected.
TAKING_SECONDS = 60


def serve(options: ServeOptions, vertex: Vertex) -> None:
    """Serve until SIGTERM or an interrupt. Then finish pending requests and return."""
    began = time.monotonic()
    folder = pathlib.Path(options.model_base_path)
    name = options.model_name or folder.resolve().name
    transport.check_name(name)
    # Errors in the glossary surface before the model is loaded.
    terms = read_terms(options.glossary) if options.glossary else None
    monitoring.start_log()
    # Imported modules never become garbage: spare the collection after a version's end from them.
    gc.freeze()
    # A new version is loaded while requests run: its thread must not keep the lock for 5 ms a turn.
    sys.setswitchinterval(0.0005)
    with (
        bind(options.host, options.rest_api_port) as listener,
        # Its threads keep the process alive: close it even if no version can be loaded.
        contextlib.closing(Batcher(options)) as batcher,
        contextlib.closing(
            Versions(folder, log=monitoring.log, alone=batcher.without_large, terms=terms)
        ) as versions,
    ):
        versions.watch(options.file_system_poll_wait_seconds)
        service = Service(name, versions, batcher, options)
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        server = Server(
            app.build(service, options.rest_api_enable_cors_support, vertex),
            batcher,
            lambda: monitoring.log(
                "serving",
                url=url,
                model=name,
                pid=os.getpid(),
                seconds=round(time.monotonic() - began, 1),
            ),
        )
        # A client that reads no answer would otherwise keep the server alive for ever.
        server.config.timeout_graceful_shutdown = options.request_timeout_ms / 1000
        # uvicorn raises the signal that ended it again after the last answer.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, server.handle_exit)
        listen(listener)
        server.run([listener])
    monitoring.log("ended")


class Server(uvicorn.Server):
    """A web server that calls `when_listening`, and at shutdown runs batches without waiting."""

    def __init__(self, application: ASGIApp, batcher: Batcher, when_listening: Callable[[], None]):
        disabled = {"ws": "none", "log_config": None, "access_log": False, "lifespan": "off"}
        super().__init__(uvicorn.Config(application, **disabled, timeout_keep_alive=30))
        self._batcher = batcher
        self._when_listening = when_listening

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self._when_listening()

    async def shutdown(self, sockets=None):
        self._batcher.hurry()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket to an address. Clients cannot connect to it yet."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # UnicodeError: a label of the host name has more than 63 letters.
    except (socket.gaierror, UnicodeError) as error:
        raise OSError(
            f"--host={host} is no address of this machine: {getattr(error, 'strerror', error)}. "
            "Try 127.0.0.1, or 0.0.0.0 for all."
        ) from error
    family, kind, protocol, _, address = addresses[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit this: an answer that nobody reads would stay in memory.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * TAKING_SECONDS)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _no_listener(host, port, error) from error
    return listener


def listen(listener: socket.socket) -> None:
    """Let clients connect, unless another server bound the port, too, and listened first."""
    try:
        listener.listen()
    except OSError as error:
        raise _no_listener(*listener.getsockname()[:2], error) from error


def _no_listener(host, port, error):
    message = f"cannot listen at --host={host} --rest_api_port={port}: {error.strerror}."
    if error.errno == errno.EADDRINUSE:
        message = f"--rest_api_port={port} is taken. Choose another, or 0 for any that is free."
    return OSError(message)
