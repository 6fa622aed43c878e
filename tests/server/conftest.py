"""A server, in this process, of a SavedModel of string operations."""

import contextlib
import copy
import functools
import threading

import pytest
from string_model import StringModel

from pipelines.vocabularies.protected_spans import ProtectedSpans


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A folder `m` with version 1, which marks nothing; beside it a version that marks its
    translations with "!".
    """
    folder = tmp_path_factory.mktemp("exported")
    StringModel("").write(folder / "m" / "1")
    (folder / "m" / "1" / "assets.extra").mkdir()
    ProtectedSpans(("tags",)).save(folder / "m" / "1" / "assets.extra")
    StringModel("!").write(folder / "marked")
    return folder


@functools.cache
def loaded(folder):
    """A version's model, loaded once for all servers."""
    from keras_transformer.server.served_versions import model_of

    return model_of(folder)


def lent(folder):
    """A model of a server's own: a test may replace its `run`."""
    model = copy.copy(loaded(folder))
    model.close = lambda: None
    return model


@contextlib.contextmanager
def serving(folder, name="m", vertex=None, **options):
    """A server of a folder, in a thread of this process.

    Gives:
        An `httpx.Client`; its attribute `service` is the server's `Service`.
    """
    import httpx

    from keras_transformer.server import app, running
    from keras_transformer.server.batcher import Batcher
    from keras_transformer.server.options import ServeOptions, Vertex
    from keras_transformer.server.served_versions import Versions
    from keras_transformer.server.service import Service

    options = ServeOptions(**{"batch_timeout_micros": 0, "num_batch_threads": 1, **options})
    listening = threading.Event()
    versions = Versions(folder, lent)
    batcher = Batcher(options)
    service = Service(name, versions, batcher, options)
    application = app.build(service, options.rest_api_enable_cors_support, vertex or Vertex())
    server = running.Server(application, batcher, listening.set)
    with running.bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        listening.wait()
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60
            ) as client:
                client.service = service
                yield client
        finally:
            server.should_exit = True
            thread.join()
            batcher.close()
            versions.close()


@pytest.fixture(scope="session")
def start():
    """Gives `serving`."""
    return serving


@pytest.fixture(scope="module")
def client(exported):
    """A client of a server of version 1."""
    with serving(exported / "m") as client:
        yield client
