"""What becomes of the options of a run that is resumed with others (section 5.2 of Vaswani
et al. 2017 trains for days): they are refused, told or free, as each says by `resumed`.
"""

from collections.abc import Mapping

from pipelines.options import FIXED, TOLD, Sections, places, recipe


def describe(folder, task, values: Mapping, sections: Sections) -> list[str]:
    """Write what a run is, and the options that it is trained with; refuse to go on with another.

    Args:
        folder: the `RunFolder`.
        task: the `Task`; `Task.fixed` says which parts of its description must not change.
        values: of the options, by name.
        sections: the options, each of which says what a resumed run may change.

    Returns:
        Which options are not as they were, in words.
    """
    resumed = {one.option.name: one.option.setting.resumed for one in places(sections)}
    description = task.description()
    training = {"batch_tokens": values["batch_tokens"], **description.get("training", {})}
    description["training"] = {**training, "seed": values["seed"]}
    description["task"] = task.name
    told = [name for name in values if resumed.get(name) == TOLD]
    if values["schedule"] == "cosine":
        # Its curve ends there.
        told.append("max_steps")
    settings = {name: values[name] for name in told}
    asked = {
        name: values[name]
        for name in values
        if resumed.get(name) == FIXED and values[name] is not None
    }
    was = folder.read_description().get("settings", {}) if folder.is_started else {}

    def fixed(whole):
        before = whole.get("asked", {})
        parts = {name: part for name, part in task.fixed(whole).items() if name != "settings"}
        # What an earlier version did not write is as it is now.
        return {**parts, "asked": {name: before.get(name, asked[name]) for name in asked}}

    folder.describe({**description, "asked": asked, "settings": settings}, fixed)
    folder.write_recipe(f"--task={task.name}\n{recipe(sections, values)}")
    return [
        f"{name} was {_in_words(was[name])}, now {_in_words(value)}"
        for name, value in settings.items()
        if name in was and was[name] != value
    ]


def _in_words(value):
    return "not given" if value is None else value
