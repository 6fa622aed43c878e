"""Folders that several tests read, and none may change; one that is empty in the end; archives."""

import pathlib
import tarfile

# By pytest and TensorFlow. Of TensorFlow's programs a command that was killed leaves some.
REMOVED_AT_THE_END = ("pytest-of-", "__autograph_generated_file", "__pycache__", "torchinductor_")


class SharedFolders:
    """Remembers folders as they were, and tells what has changed in them."""

    def __init__(self):
        self.stamps = {}

    def add(self, folder):
        """From now on nothing in the folder may change."""
        folder = pathlib.Path(folder)
        self.stamps[folder] = stamps(folder)
        return folder

    def changes(self):
        """Paths that were written, added or removed since the last call."""
        changed = []
        for folder, before in self.stamps.items():
            now = stamps(folder)
            changed += [
                folder / name
                for name in sorted(before.keys() | now.keys())
                if before.get(name) != now.get(name)
            ]
            self.stamps[folder] = now
        return changed


class TemporaryFolder:
    """Remembers after which test each file and folder in it was there first."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.first = {}

    def look(self, test):
        """Call it after each test."""
        for name in self._names():
            self.first.setdefault(name, test)

    def left(self):
        """What is in it now, with the first test after which it was."""
        return {name: self.first.get(name) for name in self._names()}

    def _names(self):
        names = sorted(path.name for path in self.folder.iterdir())
        return [name for name in names if not name.startswith(REMOVED_AT_THE_END)]


def stamps(folder):
    """When each file in a folder was written, and how long it is; of a folder, when an entry was
    added or removed.
    """
    states = {str(path.relative_to(folder)): path.lstat() for path in folder.rglob("*")}
    states["."] = folder.lstat()
    return {name: (state.st_mtime_ns, state.st_size) for name, state in states.items()}


def unpack(path: pathlib.Path, folder: pathlib.Path) -> None:
    """Write what an archive holds; Python up to 3.11.3, such as Debian 12's, knows no filters."""
    with tarfile.open(path) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
