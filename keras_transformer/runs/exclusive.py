"""A run's folder for one process at a time."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator


@contextlib.contextmanager
def exclusive(folder: pathlib.Path) -> Iterator[None]:
    """Hold a folder while a block trains in it. It is made if it is missing, and then removed if
    the block fails before it writes anything.

    The folder itself is locked, so that no file is left in it. The system lets go of it when the
    process ends, even by SIGKILL. Where a file system knows no such locks, nothing is held.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY)
    try:
        _lock(opened, folder)
        try:
            yield
        except BaseException:
            if is_new:
                # Fails if there is anything in it.
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise
    finally:
        os.close(opened)


def _lock(opened, folder):
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(
            f"another process trains in {folder}. Wait for its end, or name another --model_dir."
        ) from error
    except OSError:
        # A file system without locks on folders.
        return
