"""Files and folders that are whole or not there, even if the machine stops in between."""

import contextlib
import errno
import fcntl
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import sys
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator

from pipelines import line_files

# What reading a damaged zip file or array raises, depending on which byte is damaged.
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, OSError, EOFError)
DAMAGE += (ValueError, LookupError, RuntimeError, ArithmeticError, MemoryError)


def write_whole(
    path: str | os.PathLike,
    write: Callable[[pathlib.Path], object],
    outdated: Iterable[pathlib.Path] = (),
) -> None:
    """Write a file under a temporary name, by a function of that path, flush it to the disk, and
    rename it. Files that are outdated, wrong with the new content, are removed just before, and
    stay if writing fails.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        with errors_naming(path, temporary):
            write(temporary)
            _flush(temporary)
            for file in outdated:
                file.unlink(missing_ok=True)
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # A folder that cannot be written has none.
            temporary.unlink()


@contextlib.contextmanager
def errors_naming(
    path: str | os.PathLike, temporary: str | os.PathLike | None = None
) -> Iterator[None]:
    """Let an OSError of a block name the file that it was about, and not the temporary name that it
    has while it is written: a full disk names none, and a temporary name says nothing.
    """
    try:
        yield
    except OSError as error:
        is_ours = error.filename is None or (
            temporary is not None and str(error.filename).startswith(str(temporary))
        )
        if not is_ours:
            raise
        if error.errno is None or error.strerror is None:
            # NumPy says how many bytes it could not write, and not why.
            raise OSError(f"{path} could not be written: {error}") from error
        raise OSError(error.errno, error.strerror, str(path)) from error
    except Exception as error:
        number = _number_told_by_tensorflow(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _number_told_by_tensorflow(error):
    """The system's error number whose words end TensorFlow's message about a file, or None."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not isinstance(error, tensorflow.errors.OpError):
        return None
    words = {os.strerror(number): number for number in errno.errorcode}
    told = re.search(rf"; ({'|'.join(map(re.escape, words))})", error.message)
    return told and words[told[1]]


def as_read(value: dict) -> dict:
    """A JSON object as a file of it gives it back: lists where it has tuples."""
    return json.loads(json.dumps(value))


def write_json(path: str | os.PathLike, value: dict | list) -> None:
    """Write a JSON object or list, whole or not at all, one entry a line."""
    as_json = json.JSONEncoder(ensure_ascii=False).encode
    if isinstance(value, dict):
        opening, closing = "{}"
        entries = [f"{as_json(name)}: {as_json(entry)}" for name, entry in value.items()]
    else:
        opening, closing = "[]"
        entries = [as_json(entry) for entry in value]
    lines = ",\n".join(f"  {entry}" for entry in entries)
    write_text(path, f"{opening}\n{lines}\n{closing}\n")


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text in UTF-8, whole or not at all, gzipped if its name ends in ".gz"."""
    encoded = text.encode("utf-8")
    # Without a time, equal texts are equal bytes.
    data = gzip.compress(encoded, mtime=0) if pathlib.Path(path).suffix == ".gz" else encoded
    write_whole(path, lambda temporary: temporary.write_bytes(data))


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Write a folder, which must not exist, whole or not at all: yields an empty one, which is
    renamed when the block ends, and deleted if it fails.
    """
    path = pathlib.Path(path)
    with folder_beside(path) as temporary, errors_naming(path, temporary):
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        if path.exists():
            raise OSError("another process wrote it meanwhile. Run the command again.")
        os.rename(temporary, path)


@contextlib.contextmanager
def folder_beside(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """An empty folder beside a path, which is deleted when the block ends, or by the next if the
    process was killed.
    """
    temporary = _temporary(path)
    with kept_if_used(path.parent), contextlib.ExitStack() as held:
        for left in path.parent.glob(f".*.{'?' * 32}.tmp"):
            with contextlib.suppress(OSError), contextlib.ExitStack() as dead:
                lock(left, dead)
                shutil.rmtree(left)
        try:
            with errors_naming(path, temporary):
                temporary.mkdir()
            with contextlib.suppress(OSError):
                lock(temporary, held)
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def lock(folder: pathlib.Path, held: contextlib.ExitStack) -> None:
    """Lock a folder until a stack ends, or its process does, even by SIGKILL. An OSError says that
    it cannot be locked; a BlockingIOError, that another process holds it.
    """
    opened = os.open(folder, os.O_RDONLY)
    held.callback(os.close, opened)
    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def kept_if_used(folder: pathlib.Path) -> Iterator[None]:
    """Make a folder with its parents; a block that fails leaves no new one that is empty."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for one in missing:
                one.rmdir()
        raise


def _temporary(path):
    # A number of its own: two workers of a cluster may write the same file.
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def _flush(path):
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def read_words(path: str | os.PathLike) -> tuple[str, ...]:
    """The words of a file, one a line; lines without any are left out."""
    return tuple(filter(None, line_files.read_lines(path)))
