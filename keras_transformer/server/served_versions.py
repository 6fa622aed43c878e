"""The versions of a model in a folder: the newest is served, a newer one replaces it while the
server runs.

As TF Serving: a version is a folder named by an integer with a `saved_model.pb` in it; the new one
is loaded before the old one goes, and the old one goes when its last request is answered.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import threading
from collections.abc import Callable, Iterator

from keras_transformer.saved_models.session import SavedModel, reason_of
from keras_transformer.saved_models.versions import newest_version, number_of
from keras_transformer.server import costs
from keras_transformer.server.errors import RequestError


def _content(folder):
    """What changes whenever a file in a folder comes, goes, grows or changes.

    A version that could not be loaded may be one that is still being copied.
    """
    return [(path, _stamp(path)) for path in sorted(folder.rglob("*"))]


def _stamp(path):
    """A file's size and time; None if it has gone, or is a link to nothing."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns
    return None


@dataclasses.dataclass
class Version:
    """One version in memory, and how many requests use it.

    Args:
        number: the name of its folder.
        model: a `SavedModel`.
    """

    number: int
    model: SavedModel
    users: int = 0

    @functools.cached_property
    def sizes(self) -> costs.Sizes:
        """What the costs of its requests depend on, read once."""
        return costs.Sizes.of(self.model.folder)


@dataclasses.dataclass(frozen=True)
class State:
    """What `GET /v1/models/NAME` says of a version: LOADING, AVAILABLE, UNLOADING or END, and what
    went wrong.
    """

    state: str
    error: str = ""


class Versions:
    """What is served of a folder.

    Args:
        folder: of the versions.
        load: takes a version's folder, gives a `SavedModel`.
        log: takes an event's name and its details.

    Attributes:
        states: a `State` for each version that was ever seen, by number.

    Raises:
        FileNotFoundError: if there is no folder, or no version in it.
        ValueError: if the newest version cannot be loaded.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        load: Callable[[pathlib.Path], SavedModel] = SavedModel,
        log: Callable[..., None] = lambda event, **details: None,
    ):
        self.folder = pathlib.Path(folder)
        self.states = {}
        self._load = load
        self._log = log
        self._current = None
        self._broken = {}
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._watcher = None
        if not self.folder.is_dir():
            raise FileNotFoundError(
                f"there is no folder {folder}: --model_base_path is saved_models/<name>, where "
                "versions lie."
            )
        path = newest_version(folder)
        if path is None:
            raise FileNotFoundError(
                f"{folder} has no versions: folders named 1, 2, ... with a saved_model.pb. "
                "Export one."
            )
        self.poll()
        if self._current is None:
            [state] = self.states.values()
            raise ValueError(f"{path} cannot be loaded: {state.error}")

    @contextlib.contextmanager
    def use(self, name: str, number: int | None = None) -> Iterator[Version]:
        """The version that a request asks for, which stays in memory as long as the request uses
        it.

        Args:
            name: the model's, for the error.
            number: the version's; None: the newest.

        Raises:
            RequestError: if it is not served.
        """
        with self._changed:
            version = self._current
            if version is None or number not in (None, version.number):
                asked = f"Latest({name})" if number is None else f"Specific({name}, {number})"
                raise RequestError(404, f"Servable not found for request: {asked}")
            version.users += 1
        try:
            yield version
        finally:
            with self._changed:
                version.users -= 1
                self._changed.notify_all()

    def poll(self) -> None:
        """Serve the newest version in the folder, if another one is served now."""
        path = newest_version(self.folder)
        if path is None or (self._current and number_of(path) == self._current.number):
            return
        number = number_of(path)
        stamp = _content(path)
        if self._broken.get(number) == stamp:
            return
        self.states[number] = State("LOADING")
        self._log("loading", version=number)
        try:
            model = self._load(path)
            model.warm_up()
        # TensorFlow raises anything for a damaged file. The old version stays.
        except Exception as error:
            self._broken[number] = stamp
            self.states[number] = State("END", reason_of(error))
            self._log("broken", version=number, error=self.states[number].error)
            return
        with self._changed:
            old = self._current
            self._current = Version(number, model)
            self.states[number] = State("AVAILABLE")
        self._log("available", version=number)
        if old:
            self._unload(old)

    def watch(self, seconds: float) -> None:
        """Poll every so many seconds, in a thread, until `close`."""

        def work():
            while not self._stop.wait(seconds):
                try:
                    self.poll()
                except OSError as error:  # the folder is changed while it is read
                    self._log("poll failed", error=str(error))

        self._watcher = threading.Thread(target=work, name="versions")
        self._watcher.start()

    def close(self) -> None:
        """Stop polling, and unload what is served when its last request is answered."""
        self._stop.set()
        if self._watcher:
            self._watcher.join()
        with self._changed:
            version = self._current
            self._current = None
        if version:
            self._unload(version)

    def _unload(self, version):
        self.states[version.number] = State("UNLOADING")
        with self._changed:
            self._changed.wait_for(lambda: version.users == 0)
        version.model.close()
        self.states[version.number] = State("END")
        self._log("unloaded", version=version.number)
