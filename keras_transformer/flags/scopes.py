"""What a flag is for: tasks, architectures, or what another flag says."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from keras_transformer.flags.groups import GROUPS
from keras_transformer.models.architectures import ARCHITECTURES, VisionHyperparameters
from keras_transformer.tasks import TASKS
from pipelines.corpora import CORPORA
from pipelines.options import settings

TRANSLATORS = ("translation", "parsing")
OF_TEXT = tuple(task for task in TASKS if task != "image_classification")
# Groups of commands that serve some tasks only, besides those of `TASKS`.
OF_COMMANDS = {"translate": TRANSLATORS, "parse": ("parsing",), "tune": TRANSLATORS}
# Groups that export reads for some tasks, and other commands for all.
OF_ALL = ("precision",)
# Flags of a group that only some of its tasks have a use for.
OF_TASKS = {
    **{name: OF_TEXT for name in GROUPS["model"] if name not in settings(VisionHyperparameters)},
    **dict.fromkeys(("architecture", "kernel_size", "vocabularies"), TRANSLATORS),
    **dict.fromkeys(("validation_sentences", "coverage_penalty"), TRANSLATORS),
    "max_train_length": OF_TEXT,
    "tie_embeddings": (*TRANSLATORS, "language_modelling", "masking"),
    "target_language": tuple(task for task in OF_TEXT if task != "parsing"),
    "constrained": ("parsing",),
    "tree_leaves": ("parsing", "translation"),
    "evalb_parameters": ("parsing",),
}
# Flags of a model that not all architectures have.
OF_ARCHITECTURES = {
    name: readers
    for name in GROUPS["model"]
    if (readers := tuple(key for key, kind in ARCHITECTURES.items() if name in settings(kind)))
}


class Condition(NamedTuple):
    """What a flag has no effect without.

    Attributes:
        on: the flags that it depends on.
        words: what they must be.
        holds: takes what is said, by flag; tells whether they are.
    """

    on: Collection[str]
    words: str
    holds: Callable[[Mapping[str, str]], bool]


def _only(name, *choices):
    words = f"--{name}={' or '.join(choices)}"
    return Condition((name,), words, lambda said: said[name] in choices)


def _readers(name):
    return [corpus for corpus, kind in CORPORA.items() if name in settings(kind)]


_DAMAGED = Condition(
    ("corpus",),
    f"--corpus={' or '.join(_readers('strict'))}, and for pictures",
    lambda said: said["corpus"] in _readers("strict") or said.get("task") == "image_classification",
)
_LEARNED = Condition(
    ("corpus",),
    "a vocabulary that is learned, and --corpus=records has one: for any other --corpus",
    lambda said: said["corpus"] != "records",
)
CONDITIONS = {
    **{
        name: _only("corpus", *_readers(name))
        for name in GROUPS["corpus"]
        if name != "cache_dir" and 0 < len(_readers(name)) < len(CORPORA)
    },
    "strict": _DAMAGED,
    **dict.fromkeys(("vocabulary_size", "vocabulary_model", "vocabularies"), _LEARNED),
    "pictures_dir": _only("pictures", "folder", "fashion_mnist"),
    "learning_rate": _only("schedule", "cosine", "constant"),
    "tpu": _only("distribution", "tpu"),
    "scheduled_sampling_steps": Condition(
        ("scheduled_sampling",),
        "--scheduled_sampling above 0",
        lambda said: said["scheduled_sampling"].strip("0.") != "",
    ),
    "max_positions": Condition(
        ("positions", "attention"),
        "--positions=learned or --attention=low_rank:K",
        lambda said: said["positions"] == "learned" or said["attention"].startswith("low_rank"),
    ),
}


def _tasks_of_groups():
    found: dict[str, set[str]] = {}
    for task, entry in TASKS.items():
        for group in {*entry.flag_groups, *entry.export_flag_groups} - {*OF_ALL}:
            found.setdefault(group, set()).add(task)
    return {**found, **OF_COMMANDS}


TASKS_OF_GROUPS = _tasks_of_groups()
_GROUP_OF = {name: group for group, flags in GROUPS.items() for name in flags}


def tasks_of(flag: str) -> list[str]:
    """The tasks that have a use for a flag, in the order of `TASKS`."""
    group = TASKS_OF_GROUPS.get(_GROUP_OF.get(flag, ""), TASKS)
    return [task for task in TASKS if task in group and task in OF_TASKS.get(flag, TASKS)]


def foreign_to(flag: str, task: str | None, architecture: str) -> str | None:
    """Say what a flag is for, if a task or an architecture has no use for it; None: any task."""
    tasks = tasks_of(flag)
    if task and task not in tasks:
        return f"--task={' or '.join(tasks)}"
    architectures = OF_ARCHITECTURES.get(flag, (architecture,))
    if architecture not in architectures:
        return f"--architecture={' or '.join(architectures)}"
    return None
