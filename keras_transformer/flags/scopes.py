"""Which options there are, where: sections of commands, tasks and choices such as a corpus."""

import functools
import importlib
from collections.abc import Iterable, Mapping, Sequence

from keras_transformer.flags.of_commands import Errors
from pipelines.options import Place, Sections, active, places

# Each names its own options in SECTIONS; OF_TASKS has by task what it reads besides.
COMMANDS = (
    *("train", "evaluate", "export", "translate", "parse", "generate", "predict", "score"),
    *("align", "tune", "average", "visualize", "prepare", "distill", "import_model", "serve"),
    "translate_corpus",
)


@functools.cache
def every_place() -> Mapping[str, Sequence[Place]]:
    """The places of every option of this package, by name."""
    found: dict[str, list[Place]] = {}
    for command in COMMANDS:
        module = importlib.import_module(f"keras_transformer.{command}")
        declared = list(places((*module.SECTIONS, Errors)))
        for task, sections in getattr(module, "OF_TASKS", {}).items():
            declared += places(sections, (("task", (task,)),))
        for place in declared:
            found.setdefault(place.option.name, []).append(place)
    # What training reads for some tasks alone, other commands have no use for elsewhere.
    return {
        name: [place for place in found[name] if place.needs or not found[name][0].needs]
        for name in found
    }


def read_sections(
    sections: Sections, of_tasks: Mapping[str, Sections], said: Mapping[str, str | None]
) -> Sections:
    """All sections that a command reads, in reading order: its first, which may choose the task,
    what it reads for the task (for all tasks, if it has no --task), and the rest.
    """
    own = active(sections, said)
    tasks = [said.get("task") or own["task"].default] if "task" in own else of_tasks
    inner = (one for task in tasks for one in of_tasks.get(task, ()))
    return (*sections[:1], *inner, *sections[1:])


def tasks_of(name: str, tasks: Iterable[str]) -> list[str]:
    """Those of some tasks that have a use for an option, in their order."""
    needed = [dict(place.needs).get("task") for place in every_place().get(name, ())]
    return [task for task in tasks if any(of is None or task in of for of in needed)]


def foreign_to(name: str, said: Mapping[str, str | None]) -> tuple[str, str] | None:
    """The choice that an option needs and does not have, and how it is said; None: it has all.

    Args:
        name: of the option.
        said: the value of each option that chooses; None: nothing is known of it.
    """
    found = []
    for place in every_place().get(name, ()):
        unmet = [said.get(one) not in (None, *values) for one, values in place.needs]
        found.append(([*unmet, True].index(True), place.needs))
    if not found or any(met == len(needs) for met, needs in found):
        return None
    # The one of which the most first needs are met.
    best = max(met for met, _ in found)
    lacking = [needs[best] for met, needs in found if met == best]
    chooser = lacking[0][0]
    values = dict.fromkeys(value for _, wanted in lacking for value in wanted)
    return chooser, f"--{chooser}={' or '.join(values)}"
