"""Archives of what earlier releases wrote."""

import pathlib
import tarfile


def unpack(path: pathlib.Path, folder: pathlib.Path) -> None:
    """Write what an archive holds; Python up to 3.11.3, such as Debian 12's, knows no filters."""
    with tarfile.open(path) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
