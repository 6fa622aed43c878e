"""Atomic writes: a file or folder is whole or absent, even if the machine stops in between."""

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

# The errors of reading a damaged zip file or array, depending on which byte is damaged.
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, OSError, EOFError)
DAMAGE += (ValueError, LookupError, RuntimeError, ArithmeticError, MemoryError)


def write_whole(
    path: str | os.PathLike,
    write: Callable[[pathlib.Path], object],
    outdated: Iterable[pathlib.Path] = (),
) -> None:
    """Let `write` fill a temporary file, flush it to the disk, and rename it to `path`. Just before
    the renaming, remove the files that the new content makes `outdated`.
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
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # Renamed, or never made.
            temporary.unlink()


@contextlib.contextmanager
def errors_naming(
    path: str | os.PathLike, temporary: str | os.PathLike | None = None
) -> Iterator[None]:
    """Make an OSError of the block name `path`: on a full disk it names no file, and the temporary
    name tells the user nothing.
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
            # NumPy says only how many bytes it could not write.
            raise OSError(f"{path} could not be written: {error}") from error
        raise OSError(error.errno, error.strerror, str(path)) from error
    except Exception as error:
        number = _errno_in_tensorflow_error(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _errno_in_tensorflow_error(error):
    """Return the system's error number whose text is in TensorFlow's message, or None."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not isinstance(error, tensorflow.errors.OpError):
        return None
    numbers = {os.strerror(number): number for number in errno.errorcode}
    match = re.search(rf"; ({'|'.join(map(re.escape, numbers))})", error.message)
    return match and numbers[match[1]]


def as_read(value: dict) -> dict:
    """Return a JSON object as it is read back from a file: with lists for tuples."""
    return json.loads(json.dumps(value))


def write_json(path: str | os.PathLike, value: dict | list) -> None:
    """Write a JSON object or list atomically, one entry a line."""
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
    """Write a text atomically in UTF-8, gzipped if the path ends in ".gz"."""
    encoded = text.encode("utf-8")
    # Without a time stamp, equal texts give equal bytes.
    data = gzip.compress(encoded, mtime=0) if pathlib.Path(path).suffix == ".gz" else encoded
    write_whole(path, lambda temporary: temporary.write_bytes(data))


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Write a new folder atomically: yield an empty one, which is renamed to `path` when the block
    ends, and deleted if the block fails.
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
    """Yield an empty folder beside a path. It is deleted when the block ends, or, if the
    process was killed, by the next call in the same parent.
    """
    temporary = _temporary(path)
    with kept_if_used(path.parent), contextlib.ExitStack() as lock_of_ours:
        for leftover in path.parent.glob(f".*.{'?' * 32}.tmp"):
            with contextlib.suppress(OSError), contextlib.ExitStack() as lock_of_leftover:
                lock(leftover, lock_of_leftover)
                shutil.rmtree(leftover)
        try:
            with errors_naming(path, temporary):
                # Under its name another process would take it for a leftover before it is locked.
                unlocked = pathlib.Path(f"{temporary}.new")
                unlocked.mkdir()
                with contextlib.suppress(OSError):
                    lock(unlocked, lock_of_ours)
                unlocked.rename(temporary)
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def lock(folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
    """Lock a folder until the stack closes, or the process ends, even by SIGKILL. Raise an OSError
    if it cannot be locked; a BlockingIOError if another process holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def kept_if_used(folder: pathlib.Path) -> Iterator[None]:
    """Make a folder and its parents; if the block fails, remove those that are new and empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for path in missing:
                path.rmdir()
        raise


def _temporary(path):
    # A unique name: two workers of a cluster may write the same file. It may not be too long.
    return path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex}.tmp")


def _flush(path):
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def read_words(path: str | os.PathLike) -> tuple[str, ...]:
    """Read the words of a file, one a line, without empty lines."""
    return tuple(filter(None, line_files.read_lines(path)))
