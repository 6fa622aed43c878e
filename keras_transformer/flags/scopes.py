"""Where each option is declared: in sections of commands, tasks and choices such as a corpus."""

import functools
import importlib
from collections.abc import Iterable, Mapping, Sequence

from keras_transformer.flags.of_commands import Errors
from pipelines.options import Place, Sections, active, places

# Each lists its sections of options in SECTIONS, and in OF_TASKS, by task, further ones.
COMMANDS = (
    *("train", "evaluate", "export", "translate", "parse", "generate", "predict", "score"),
    *("align", "tune", "average", "visualize", "prepare", "distill", "import_model", "serve"),
    "translate_corpus",
)


@functools.cache
def every_place() -> Mapping[str, Sequence[Place]]:
    """Return the places of every option of this package, by name."""
    by_name: dict[str, list[Place]] = {}
    for command in COMMANDS:
        module = importlib.import_module(f"keras_transformer.{command}")
        declared = list(places((*module.SECTIONS, Errors)))
        for task, sections in getattr(module, "OF_TASKS", {}).items():
            declared += places(sections, (("task", (task,)),))
        for place in declared:
            by_name.setdefault(place.option.name, []).append(place)
    # An option that `train`, the first, reads for some tasks has no use in commands for others.
    return {
        name: [place for place in declared if place.needs or not declared[0].needs]
        for name, declared in by_name.items()
    }


def read_sections(
    sections: Sections, of_tasks: Mapping[str, Sections], values: Mapping[str, str | None]
) -> Sections:
    """Return all sections that a command reads, in the order of its help: its first, which may
    choose the task, those of the task (of all tasks without --task), and the rest.
    """
    own = active(sections, values)
    tasks = [values.get("task") or own["task"].default] if "task" in own else of_tasks
    inner = (section for task in tasks for section in of_tasks.get(task, ()))
    return (*sections[:1], *inner, *sections[1:])


def tasks_of(name: str, tasks: Iterable[str]) -> list[str]:
    """Return those of some tasks that have a use for an option, in their order."""
    needed = [dict(place.needs).get("task") for place in every_place().get(name, ())]
    return [task for task in tasks if any(of is None or task in of for of in needed)]


def foreign_to(name: str, values: Mapping[str, str | None]) -> tuple[str, str] | None:
    """Return the option whose choice another lacks, and the flags for it; None if none is lacking.

    Args:
        name: of the option that needs the choice.
        values: of each option that chooses, by name; None: unknown.
    """
    progress = []
    for place in every_place().get(name, ()):
        unmet = [values.get(chooser) not in (None, *choices) for chooser, choices in place.needs]
        progress.append(([*unmet, True].index(True), place.needs))
    if not progress or any(met == len(needs) for met, needs in progress):
        return None
    # Blame the places that come closest: with the most needs met before one that is not.
    most = max(met for met, _ in progress)
    lacking = [needs[most] for met, needs in progress if met == most]
    chooser = lacking[0][0]
    alternatives = dict.fromkeys(choice for _, choices in lacking for choice in choices)
    return chooser, f"--{chooser}={' or '.join(alternatives)}"
