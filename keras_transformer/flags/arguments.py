"""The strict reading of a command line and its flag files."""

import contextlib
import difflib
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags as absl_flags

from keras_transformer.flagfiles import Argument, placed
from keras_transformer.flags.definition import PathParser, define, no_folder
from keras_transformer.flags.scopes import every_place, foreign_to, read_sections
from pipelines.options import Sections, active, as_text, places, unmet_only

LONGEST_SHOWN = 100
# A later flag that replaces a recipe's choice drops the recipe's options of it. Not so for these.
NEVER_REPLACED = ("task", "architecture")


class Setting(NamedTuple):
    """A flag with its value.

    Attributes:
        name, value: as they were written; value "true" or "false" of --flag and --noflag.
        argument: the argument that sets it, with its place.
    """

    name: str
    value: str
    argument: Argument

    @property
    def text(self) -> str:
        return f"--{self.name}={self.value}"


class WrongFlag(ValueError):
    """A mistake in the command line: an unknown or misplaced flag, or a wrong value."""


def parse(
    FLAGS: absl_flags.FlagValues,
    arguments: Sequence[str],
    sections: Sections,
    of_tasks: Mapping[str, Sections] | None = None,
) -> dict[str, Argument]:
    """Define and set the flags of a command.

    Options that choose others, such as --task and --corpus, are read first, the last of each. Then
    every flag must have a use with these choices. A flag file serves all commands of a task: flags
    of others are checked there, and refused on the command line. The command reads `sections`, and
    those of the task, or of all tasks if it has no --task.

    Returns:
        The argument that set each flag, by name.
    """
    of_tasks = of_tasks or {}
    readable = (*sections, *(section for inner in of_tasks.values() for section in inner))
    settings, flags, choosers, is_alone = _read(arguments, readable)
    choices = _choices(settings, sections, of_tasks, flags, choosers)
    options = active(read_sections(sections, of_tasks, choices), choices)
    settings = _without_replaced(settings, _values(settings, options, choices), options)
    choices = _choices(settings, sections, of_tasks, flags, choosers)
    options = active(read_sections(sections, of_tasks, choices), choices)
    define(options.values(), FLAGS)
    values = _values(settings, options, choices)
    set_by = {}
    for setting in settings:
        name = setting.name
        _refuse_foreign(setting, values, options, None if is_alone else foreign_to(name, values))
        _check_value(setting, (FLAGS if name in options else flags)[name], name in options)
        if name in options:
            FLAGS[name].parse(setting.value)
            FLAGS[name].using_default_value = False
            set_by[name] = setting.argument
    FLAGS.mark_as_parsed()
    return set_by


def _read(arguments, readable):
    """Return the settings of a command line; the flags that it may set, by name; the names of the
    options that choose others; and whether it sets only flags of the `readable` sections.
    """
    own, choosers = _flags(readable)
    arguments = placed(arguments)
    # To import other commands takes as long as translating some lines. It is not needed if every
    # flag is the command's own and none of its options chooses others.
    if not choosers & own.keys():
        with contextlib.suppress(WrongFlag):
            return _settings(arguments, own, own), own, choosers, True
    of_all, choosers_of_all = _flags()
    flags = of_all | own
    return _settings(arguments, flags, own), flags, choosers | choosers_of_all, False


@functools.cache
def _flags(sections=None):
    """Return unset flags of some sections, or of all commands, by name; and which choose others."""
    groups = every_place().values() if sections is None else [places(sections)]
    declared = [place for group in groups for place in group]
    flags = absl_flags.FlagValues()
    define((place.option for place in declared), flags)
    choosers = {name for place in declared for name, _ in place.needs}
    return {name: flags[name] for name in flags}, choosers


def _settings(arguments, flags, own):
    """Return each argument as a `Setting`; refuse what is no flag."""
    settings = []
    rest = iter(arguments)
    for argument in rest:
        text = argument.text
        name, equals, value = text.removeprefix("-").removeprefix("-").partition("=")
        if not text.startswith("-") or not name:
            remedy = ": every argument is a flag, --name=value. See --help."
            if text.endswith(".flags"):
                remedy = f". Write --flagfile={_short(text)}."
            raise WrongFlag(f"{argument.place}: unexpected argument {_short(text)!r}{remedy}")
        flag, negated = _flag(name, flags)
        if flag is None:
            raise WrongFlag(f"{argument.place}: {_unknown(name, argument, own, flags)}")
        if flag.boolean and not equals:
            value = "false" if negated else "true"
        elif negated:
            raise WrongFlag(f"{argument.place}: --{name} takes no value. Received: {_short(value)}")
        elif not equals:
            following = next(rest, None)
            if following is None or following.file or argument.file:
                raise WrongFlag(f"{argument.place}: --{name} needs a value: --{name}=VALUE.")
            value = following.text
        settings.append(Setting(flag.name, value, argument))
    return settings


def _flag(name, flags):
    """Return the flag of a name, None if there is none, and whether the name negates it."""
    positive = name.removeprefix("no")
    if name in flags:
        return flags[name], False
    if positive != name and positive in flags and flags[positive].boolean:
        return flags[positive], True
    return None, False


def _unknown(name, argument, own, flags):
    flag, space, value = name.partition(" ")
    if space and flag in flags:
        return f"--{_short(name)} does not exist. Write --{flag}={_short(value.strip())}."
    names = [option for option in flags if argument.file or option in own]
    begin = [option for option in names if option.startswith(name) and len(name) > 2]
    akin = [option for option in names if option.partition("_")[0] == name.partition("_")[0]]
    meant = begin[0] if begin else akin[0] if len(akin) == 1 else name
    return f"--{_short(name)} does not exist. {_suggestion(meant, names) or 'See --help.'}"


def _suggestion(name, names):
    alike = difflib.get_close_matches(name[:LONGEST_SHOWN].lower(), names, 1, 0.7)
    return f"Did you mean --{alike[0]}?" if alike else ""


def _choices(settings, sections, of_tasks, flags, choosers):
    """Return the value, as text, of each option that chooses others: its default if no flag sets
    it, and None if only other commands have it.
    """
    choices: dict[str, str | None] = dict.fromkeys(sorted(choosers))
    for setting in settings:
        if setting.name in choosers:
            _converted(setting, flags[setting.name])
            choices[setting.name] = setting.value
    # The task first: the other options that choose may be its own.
    for inner in (sections, read_sections(sections, of_tasks, choices)):
        for name, option in active(inner, choices).items():
            if name in choosers and choices[name] is None:
                choices[name] = option.default
    return choices


def _values(settings, options, choices):
    """Return the value, as text, of each option of the command and of each other that is set."""
    defaults = choices | {name: option.default for name, option in options.items()}
    values = {name: "" if value is None else as_text(value) for name, value in defaults.items()}
    values |= {setting.name: setting.value for setting in settings}
    return values | {name: value for name, value in choices.items() if value is None}


def _without_replaced(settings, values, options):
    """Leave out a flag file's settings for a choice, such as a corpus, that a later flag outside of
    this file replaced: `--flagfile=base.flags --corpus=text_files` has no --dataset.
    """
    last = {setting.name: number for number, setting in enumerate(settings)}

    def is_replaced(number, setting):
        if not setting.argument.file:
            return False
        choosers = []
        if lacking := foreign_to(setting.name, values):
            choosers = [lacking[0]]
        elif setting.name in options and (unmet := unmet_only(options[setting.name], values)):
            choosers = unmet[0]
        return any(
            settings[last[name]].argument.file != setting.argument.file
            for name in choosers
            if last.get(name, -1) > number and name not in NEVER_REPLACED
        )

    return [setting for number, setting in enumerate(settings) if not is_replaced(number, setting)]


def _refuse_foreign(setting, values, options, lacking):
    """Refuse a flag that has no use here, or lacks a choice."""
    flag = f"{setting.argument.place}: --{setting.name}"
    if lacking:
        chooser, words = lacking
        remedy = "Leave it out."
        if chooser not in NEVER_REPLACED:
            received = f"Received: --{chooser}={values[chooser]}."
            remedy = f"{received} Pass another --{chooser}, or leave out --{setting.name}."
        raise WrongFlag(f"{flag} is for {words}. {remedy}")
    if setting.name not in options:
        if not setting.argument.file:
            suggestion = _suggestion(setting.name, options)
            remedy = f"{suggestion} Else leave it out." if suggestion else "Leave it out."
            raise WrongFlag(f"{flag} is a flag of other commands. {remedy}")
        return
    if unmet := unmet_only(options[setting.name], values):
        names, words = unmet
        received = (f"--{name}={_short(values[name].replace('()', ''))}" for name in names)
        raise WrongFlag(f"{flag} is for {words}. Received: {', '.join(received)}. Leave it out.")


def _check_value(setting, flag, is_read):
    """Refuse a value that its flag cannot have, or, if it is read, a folder that cannot be made."""
    value = _converted(setting, flag)
    makes_folder = isinstance(flag.parser, PathParser) and flag.parser.is_folder
    if is_read and makes_folder and (wrong := no_folder(value)):
        raise WrongFlag(f"{setting.argument.place}: {_short(setting.text)}: {wrong}")


def _converted(setting, flag) -> Any:
    """Return a setting's value as its flag reads it; an error says the setting's place."""
    try:
        return flag.parser.parse(setting.value)
    except ValueError as error:
        reason = "must be true or false." if flag.boolean else str(error)
        place = setting.argument.place
        raise WrongFlag(f"{place}: {_short(setting.text)}: {_short(reason, 600)}") from error


def _short(text, most=LONGEST_SHOWN):
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
