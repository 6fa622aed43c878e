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
class Course(Options):
    """Course of the run."""

    max_steps: int = option(
        100000, "Stop after this many steps, if no other limit comes first.", at_least=1
    )
    max_epochs: int | None = option(
        None, "Stop after this many epochs, if no other limit comes first.", at_least=1
    )
    max_minutes: float | None = option(
        None, "Stop after this many minutes of training, if no other limit comes first.", at_least=0
    )
    patience: int | None = option(
        None,
        "Stop after this many epochs without improvement of the measure of --keep_best, or of "
        "the cross-entropy without that flag.",
        at_least=1,
    )
    keep_best: str | None = option(
        None,
        "Score and export the best epoch by this measure, instead of an average of checkpoints: "
        "cross_entropy; for translation also bleu, for parsing f1, for other tasks accuracy.",
    )
    checkpoint_minutes: float = option(
        10.0,
        "Minutes between two checkpoints to resume from. Each epoch's end is saved as well.",
        at_least=0,
    )
    average_over: str = option(
        "minutes",
        "Checkpoints to average: those written every --checkpoint_minutes, as in the paper "
        "(with --max_minutes those of --average_share), or those written at the ends of epochs.",
        choices=("minutes", "epochs"),
    )
    average_share: float = option(
        0.2,
        "With --max_minutes and --average_over=minutes: the share of the run's end in which the "
        "checkpoints to average are written, evenly in time, the last weights among them. As "
        "many of them are averaged as have the lowest validation cross-entropy.",
        at_least=1e-06,
        at_most=1,
    )
    keep_checkpoints: int = option(
        10, "Number of last checkpoints to keep, of those that --average_over names.", at_least=1
    )
    validation_sentences: int = option(
        500,
        "Number of sentences to translate for BLEU, or to parse for F1, after each epoch; 0: "
        "none. This search is greedy.",
        at_least=0,
    )
    mixed_precision: str = option(
        "auto",
        "Precision to compute in while training. auto: bfloat16 if the processor is fast at it.",
        choices=("auto", "float32", "bfloat16"),
    )
    release: bool = option(
        True,
        "Score the test split and export the model at the end. With --norelease, `evaluate` and "
        "`export` can do both later.",
    )
    report: bool = option(
        False,
        "Count the floating-point operations of the training, also estimate them from its time "
        "as the paper does, print both numbers, and write them to the run's cost.json.",
    )
    init_from: str | None = option(
        None,
        "Start from the weights of this run's folder, of a checkpoint in it, or of this "
        "SavedModel.",
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class RunOptions(Options):
    """Run."""

    model_dir: str | None = option(
        None,
        "Folder of the run. Default for training a translator: runs/<corpus>_<source>_<target>; "
        "other tasks print theirs at the start.",
        path="folder",
    )


@dataclasses.dataclass(frozen=True)
class ExportOptions(Options):
    """Export."""

    export_dir: str | None = option(
        None,
        "Folder of the exported versions. Default: saved_models/<name of the model_dir>.",
        path="folder",
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
