"""Folders that several tests read, and none may change."""

import pathlib


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


def stamps(folder):
    """When each file in a folder was written, and how long it is; of a folder, when an entry was
    added or removed.
    """
    states = {str(path.relative_to(folder)): path.lstat() for path in folder.rglob("*")}
    states["."] = folder.lstat()
    return {name: (state.st_mtime_ns, state.st_size) for name, state in states.items()}
