"""The versions of a model in a folder: the newest is served, until a newer one replaces it.

As in TF Serving, a version is a folder named by an integer, with a `saved_model.pb`, or here graphs
of ONNX or LiteRT. The old version is unloaded when the new one is loaded and its requests are done.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import sys
import threading
import typing
from collections.abc import Callable, Iterator, Mapping

from keras_transformer.saved_models.signature import Signature
from keras_transformer.saved_models.versions import DECODERS, portable_format, versions_in
from keras_transformer.server import costs
from keras_transformer.server.options import RequestError
from keras_transformer.startup import spread_over_cores, start_tensorflow
from keras_transformer.tensorflow_errors import reason_of
from pipelines.glossary import Glossary
from pipelines.vocabularies.protected_spans import ProtectedSpans

if typing.TYPE_CHECKING:
    from keras_transformer.server.portable_model import ServedPortable
    from keras_transformer.server.tensorflow_model import TensorFlowModel


@dataclasses.dataclass
class Version:
    """A loaded version, and the number of requests that use it."""

    number: int
    model: "TensorFlowModel | ServedPortable"
    terms: Mapping[str, str]
    users: int = 0

    def signature(self, name: str) -> Signature:
        if name not in self.model.signatures:
            reason = self.model.missing_signatures.get(name)
            raise RequestError(
                f'Serving signature name: "{name}" not found in signature def'
                + (f": {reason}" if reason else "")
            )
        return self.model.signatures[name]

    @functools.cached_property
    def sizes(self) -> costs.Sizes:
        """The model's sizes, by which requests are costed; read once."""
        return costs.Sizes.of(self.model)

    @functools.cached_property
    def glossary(self) -> Glossary:
        """The server's glossary for this model; made once."""
        return Glossary(self.terms, ProtectedSpans.load(self.model.extras))


@dataclasses.dataclass(frozen=True)
class State:
    """A version's state in `GET /v1/models/NAME`, from LOADING to END, and its error, if any."""

    state: str
    error: str = ""


class Versions:
    """Serves the newest version in a folder. `load` takes a version's folder and returns a model;
    `log` takes an event and its details; a version is loaded within `alone()`. A version that
    cannot use the glossary's `terms` is not served. `states` has a `State` for each version number.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        load: Callable | None = None,
        log: Callable[..., None] = lambda event, **details: None,
        alone: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext,
        terms: Mapping[str, str] | None = None,
    ):
        self.folder = pathlib.Path(folder)
        self.states = {}
        self._load = load or model_of
        self._log = log
        self._alone = alone
        self.terms = terms or {}
        self._current = None
        # By number, the files of each version that could not be loaded.
        self._broken = {}
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._watcher = None
        if not self.folder.is_dir():
            raise FileNotFoundError(
                f"there is no folder {folder}: --model_base_path must be the folder of a model's "
                "versions, such as saved_models/<name>."
            )
        folders = versions_in(folder)
        if not folders:
            raise FileNotFoundError(
                f"{folder} has no versions: folders named 1, 2, ... with a saved_model.pb or a "
                f"{' or a '.join(DECODERS.values())}. Name the folder that has them, or export one."
            )
        self.poll()
        if self._current is None:
            newest = max(folders)
            raise ValueError(f"{folders[newest]} cannot be loaded: {self.states[newest].error}")

    def available(self) -> list[int]:
        """Return the numbers of the versions that are served."""
        states = [*self.states.items()]
        return sorted(number for number, state in states if state.state == "AVAILABLE")

    @contextlib.contextmanager
    def use(self, name: str, number: int | None = None) -> Iterator[Version]:
        """Keep version `number`, None: the newest, in memory while a request uses it. The model's
        name is for the error.
        """
        with self._changed:
            version = self._current
            if version is None or number not in (None, version.number):
                raise not_served(name, number)
            version.users += 1
        try:
            yield version
        finally:
            with self._changed:
                version.users -= 1
                self._changed.notify_all()

    def poll(self) -> None:
        """Serve the newest version in the folder that can be loaded, unless it is served already.

        A version that cannot be loaded may still be being copied: it is tried again when its files
        change, and forgotten when it is removed.
        """
        folders = versions_in(self.folder)
        for removed in self._broken.keys() - folders.keys():
            del self._broken[removed], self.states[removed]
        for number, path in sorted(folders.items(), reverse=True):
            if self._current and number == self._current.number:
                return
            # Links to folders are entered, too.
            files = {*path.rglob("*"), *path.glob("*/*")}
            content = [(file, _stamp(file)) for file in sorted(files)]
            if self._broken.get(number) == content:
                continue
            if version := self._loaded(number, path):
                self._broken.pop(number, None)
                self._replace(version)
                return
            self._broken[number] = content

    def watch(self, seconds: float) -> None:
        """Poll every `seconds`, in a thread, until `close`."""

        def work():
            while not self._stop.wait(seconds):
                try:
                    self.poll()
                except Exception as error:  # such as a folder that changes while it is read
                    self._log("poll failed", error=str(error))

        self._watcher = threading.Thread(target=work, name="versions")
        self._watcher.start()

    def close(self) -> None:
        """Stop polling, and unload the version after its last request."""
        self._stop.set()
        if self._watcher:
            self._watcher.join()
        self._replace(None)

    def _loaded(self, number, path):
        """Load a version and warm it up; None if it cannot be loaded."""
        self.states[number] = State("LOADING")
        self._log("loading", version=number)
        version = None
        try:
            with self._alone():
                version = Version(number, self._load(path), self.terms)
                for text in ("a", "A") if self.terms else ():
                    version.glossary.applied(text)
                version.model.warm_up()
        # TensorFlow may raise any error for a damaged file.
        except Exception as error:
            if version:
                version.model.close()
            self.states[number] = State("END", reason_of(error))
            self._log("broken", version=number, error=self.states[number].error)
            return None
        return version

    def _replace(self, version):
        with self._changed:
            old = self._current
            self._current = version
            if version:
                self.states[version.number] = State("AVAILABLE")
        if version:
            self._log("available", version=version.number)
        if old:
            self.states[old.number] = State("UNLOADING")
            with self._changed:
                self._changed.wait_for(lambda: old.users == 0)
            old.model.close()
            self.states[old.number] = State("END")
            self._log("unloaded", version=old.number)


def model_of(folder: pathlib.Path) -> "TensorFlowModel | ServedPortable":
    """Load the model in a version's folder. TensorFlow is imported only for a SavedModel."""
    if portable_format(folder):
        from keras_transformer.server.portable_model import ServedPortable

        return ServedPortable(folder)
    if "tensorflow" not in sys.modules:  # The command started with graphs that need none.
        start_tensorflow()
        spread_over_cores()
    from keras_transformer.server.tensorflow_model import TensorFlowModel

    return TensorFlowModel(folder)


def not_served(name: str, number: int | None) -> RequestError:
    """Return TF Serving's error for a version that is not served; None: the newest."""
    version = f"Latest({name})" if number is None else f"Specific({name}, {number})"
    return RequestError(f"Servable not found for request: {version}", 404)


def _stamp(path):
    """Return a file's size and time; None if it is gone, or a dangling link."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns
    return None
