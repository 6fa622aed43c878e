"""Flags of a training run: when it ends, what it measures, what it keeps, and where."""

import dataclasses

from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class TaskChoice(Options):
    """Task."""

    task: str = option(
        "translation",
        "What is learned: to translate sentences; to parse them, from a treebank; to continue "
        "text of one language; to predict its masked pieces; to classify texts; to tag words; "
        "or to classify images.",
        choices=(
            "translation",
            "parsing",
            "language_modelling",
            "masking",
            "classification",
            "tagging",
            "image_classification",
        ),
    )


@dataclasses.dataclass(frozen=True)
class RunOptions(Options):
    """Run."""

    model_dir: str | None = option(
        None,
        "Folder of the run. Default for training a translator: runs/<corpus>_<source>_<target>; "
        "other tasks print theirs at the start.",
        path="folder",
        resumed="free",
    )


@dataclasses.dataclass(frozen=True)
class ExportOptions(Options):
    """Export."""

    export_dir: str | None = option(
        None,
        "Folder of the exported versions. Default: saved_models/<name of the model_dir>.",
        path="folder",
        resumed="free",
    )


@dataclasses.dataclass(frozen=True)
class Version(Options):
    """Version."""

    version: int | None = option(
        None,
        "Number of the exported version. Default: the next free one.",
        at_least=1,
        at_most=9223372036854775807,
    )


@dataclasses.dataclass(frozen=True)
class Format(Options):
    """Format."""

    format: str = option(
        "saved_model",
        "Format of the export. ctranslate2 is for the engine of that name, which has its own "
        "search.",
        choices=("saved_model", "ctranslate2"),
    )
