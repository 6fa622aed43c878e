"""Where a run lies."""

import dataclasses

from pipelines.options import FREE, Options, option


@dataclasses.dataclass(frozen=True)
class RunOptions(Options):
    """Run."""

    model_dir: str | None = option(
        None,
        "Folder of the run. Default for training a translator: runs/<corpus>_<source>_<target>; "
        "other tasks print theirs at the start.",
        path="folder",
        resumed=FREE,
    )
