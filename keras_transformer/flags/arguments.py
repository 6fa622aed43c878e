"""How a command line and its flag files are read: strictly, wherever a flag stands."""

import contextlib
import difflib
import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags as absl_flags

from keras_transformer.flagfiles import Argument, placed
from keras_transformer.flags.definition import PathParser, define, no_folder, wrong_path
from keras_transformer.flags.scopes import every_place, foreign_to, read_sections
from pipelines.options import Sections, active, as_text, places, unmet_only

LONGEST_SHOWN = 100
# How absl says the values of an enumeration.
CHOICES = re.compile("value should be one of <(.*)>")
# What a later flag replaces, in a recipe, takes the recipe's own options with it; these do not.
NEVER_REPLACED = ("task", "architecture")


class Setting(NamedTuple):
    """A flag that is given a value.

    Attributes:
        name, value: as they were written; value "true" or "false" of --flag and --noflag.
        argument: where.
    """

    name: str
    value: str
    argument: Argument

    @property
    def text(self) -> str:
        return f"--{self.name}={self.value}"


class WrongFlag(ValueError):
    """A flag that cannot be, or cannot be here: a mistake in the command line."""


def parse(
    FLAGS: absl_flags.FlagValues,
    arguments: Sequence[str],
    sections: Sections,
    of_tasks: Mapping[str, Sections] | None = None,
) -> dict[str, Argument]:
    """Define and set the flags of a command.

    What chooses is found first, such as --task and --corpus, the last of each; then every flag must
    be one that there is a use for, in the command line one of this command too. A flag file serves
    all commands of a task: what this one does not read is checked, and left. The command reads
    `sections`, and those of the task, or of all if there is no --task.

    Returns:
        Where each flag that was set stands, by name.
    """
    of_tasks = of_tasks or {}
    mine = (*sections, *(one for inner in of_tasks.values() for one in inner))
    settings, known, choosers, is_alone = _read(arguments, mine)
    said = _chosen(settings, sections, of_tasks, known, choosers)
    own = active(read_sections(sections, of_tasks, said), said)
    settings = _without_replaced(settings, _said(settings, own, said), own)
    said = _chosen(settings, sections, of_tasks, known, choosers)
    own = active(read_sections(sections, of_tasks, said), said)
    define(own.values(), FLAGS)
    said = _said(settings, own, said)
    found = {}
    for one in settings:
        _refuse_foreign(one, said, own, None if is_alone else foreign_to(one.name, said))
        is_own = one.name in own
        _check_value(one, (FLAGS if is_own else known)[one.name], is_own)
        if is_own:
            _told(one, lambda one=one: FLAGS[one.name].parse(one.value))
            FLAGS[one.name].using_default_value = False
            found[one.name] = one.argument
    FLAGS.mark_as_parsed()
    return found


def _read(arguments, mine):
    """The settings that arguments are, a flag of every option that they may be of, the names of
    the options that choose what some are for, and whether all are of sections of the command.
    """
    own, choosers = _known(mine)
    given = placed(arguments)
    # Importing what other commands have takes as long as translating some lines. Nothing can be
    # theirs where all flags are this command's own and none of these chooses what others are for.
    if not choosers & own.keys():
        with contextlib.suppress(WrongFlag):
            return _settings(given, own, own), own, choosers, True
    others, of_others = _known()
    known = others | own
    return _settings(given, known, own), known, choosers | of_others, False


@functools.cache
def _known(mine=None):
    """Flags of some sections, or of all commands, to read alone; the names of what chooses."""
    groups = every_place().values() if mine is None else [places(mine)]
    found = [place for group in groups for place in group]
    known = absl_flags.FlagValues()
    define((place.option for place in found), known)
    return {one: known[one] for one in known}, {name for place in found for name, _ in place.needs}


def _settings(arguments, known, own):
    """The arguments as `Setting`s, each of a flag that there is."""
    found = []
    rest = iter(arguments)
    for argument in rest:
        text = argument.text
        name, equals, value = text.removeprefix("-").removeprefix("-").partition("=")
        if not text.startswith("-") or not name:
            remedy = ": every argument is a flag, --name=value. See --help."
            if text.endswith(".flags"):
                remedy = f". Write --flagfile={_short(text)}."
            raise WrongFlag(f"{argument.place}: unexpected argument {_short(text)!r}{remedy}")
        flag, negated = _flag(name, known)
        if flag is None:
            raise WrongFlag(f"{argument.place}: {_unknown(name, argument, own, known)}")
        if flag.boolean and not equals:
            value = "false" if negated else "true"
        elif negated:
            raise WrongFlag(f"{argument.place}: --{name} takes no value. Received: {_short(value)}")
        elif not equals:
            following = next(rest, None)
            if following is None or following.file or argument.file:
                raise WrongFlag(f"{argument.place}: --{name} needs a value: --{name}=VALUE.")
            value = following.text
        found.append(Setting(flag.name, value, argument))
    return found


def _flag(name, known):
    """The flag of a name, and whether the name negates it."""
    positive = name.removeprefix("no")
    if name in known:
        return known[name], False
    if positive != name and positive in known and known[positive].boolean:
        return known[positive], True
    return None, False


def _unknown(name, argument, own, known):
    flag, space, value = name.partition(" ")
    if space and flag in known:
        return f"--{_short(name)} does not exist. Write --{flag}={_short(value.strip())}."
    names = [one for one in known if argument.file or one in own]
    begin = [one for one in names if one.startswith(name) and len(name) > 2]
    akin = [one for one in names if one.partition("_")[0] == name.partition("_")[0]]
    meant = begin[0] if begin else akin[0] if len(akin) == 1 else name
    return f"--{_short(name)} does not exist. {_alike(meant, names) or 'See --help.'}"


def _alike(name, names):
    alike = difflib.get_close_matches(name[:LONGEST_SHOWN].lower(), names, 1, 0.7)
    return f"Did you mean --{alike[0]}?" if alike else ""


def _chosen(settings, sections, of_tasks, known, choosers):
    """What is said, by name, of the options that choose: their default if nothing is said of them,
    None of those that only other commands have.
    """
    said: dict[str, str | None] = dict.fromkeys(sorted(choosers))
    for one in settings:
        if one.name in choosers:
            _told(one, lambda one=one: known[one.name].parser.parse(one.value))
            said[one.name] = one.value
    # The task first: the other options that choose may be its own.
    for inner in (sections, read_sections(sections, of_tasks, said)):
        own = active(inner, said)
        said |= {name: own[name].default for name in own if name in choosers and said[name] is None}
    return said


def _said(settings, own, chosen):
    """What each flag of the command will be, and what others are said, as text, by name."""
    flags = chosen | {name: one.default for name, one in own.items()}
    said = {name: "" if value is None else as_text(value) for name, value in flags.items()}
    said |= {one.name: one.value for one in settings}
    return said | {name: value for name, value in chosen.items() if value is None}


def _without_replaced(settings, said, own):
    """Leave out what a flag file says for a corpus, or the like, that a later flag replaced which
    does not stand in the same file: `--flagfile=base.flags --corpus=text_files` has no --dataset.
    """
    last = {one.name: number for number, one in enumerate(settings)}

    def is_replaced(number, one):
        if not one.argument.file:
            return False
        names = []
        if lacking := foreign_to(one.name, said):
            names = [lacking[0]]
        elif one.name in own and (unmet := unmet_only(own[one.name], said)):
            names = unmet[0]
        later = [last[name] for name in names if last.get(name, -1) > number]
        return any(
            settings[place].argument.file != one.argument.file
            for place in later
            if settings[place].name not in NEVER_REPLACED
        )

    return [one for number, one in enumerate(settings) if not is_replaced(number, one)]


def _refuse_foreign(one, said, own, lacking):
    """Refuse a flag that has no use here, or lacks a choice."""
    place = one.argument.place
    if lacking:
        chooser, words = lacking
        came = "" if chooser in NEVER_REPLACED else f" Received: --{chooser}={said[chooser]}."
        raise WrongFlag(f"{place}: --{one.name} is for {words}.{came} Leave it out.")
    if one.name not in own:
        if not one.argument.file:
            alike = _alike(one.name, own)
            remedy = f"{alike} Else leave it out." if alike else "Leave it out."
            raise WrongFlag(f"{place}: --{one.name} is a flag of other commands. {remedy}")
        return
    if unmet := unmet_only(own[one.name], said):
        names, words = unmet
        came = ", ".join(f"--{name}={_short(said[name].replace('()', ''))}" for name in names)
        raise WrongFlag(f"{place}: --{one.name} is for {words}. Received: {came}. Leave it out.")


def _check_value(one, flag, is_read):
    """Refuse what no flag of the kind may be, and where it is read a folder that is none."""
    value = _told(one, lambda: flag.parser.parse(one.value))
    if isinstance(value, float) and not math.isfinite(value):
        raise WrongFlag(f"{one.argument.place}: {one.text} must be a finite number.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise WrongFlag(f"{one.argument.place}: {_short(one.text)} is beyond all whole numbers.")
    if isinstance(flag.parser, PathParser):
        wrong = wrong_path(value) or (is_read and flag.parser.is_folder and no_folder(value))
        if wrong:
            raise WrongFlag(f"{one.argument.place}: {_short(one.text)}: {wrong}")


def _told(one, read) -> Any:
    """Read a value; if it is wrong, say where it stands."""
    try:
        return read()
    except (absl_flags.Error, ValueError, TypeError, OverflowError) as error:
        reason = str(error).removeprefix(f"flag {one.text}: ")
        if choices := CHOICES.fullmatch(reason):
            reason = f"must be one of {choices[1].replace('|', ', ')}."
        reason = re.sub("invalid literal for int.*", "must be a whole number.", reason)
        reason = re.sub("could not convert .*", "must be a number.", reason)
        reason = re.sub(r"\('Non-boolean .*", "must be true or false.", reason)
        raise WrongFlag(
            f"{one.argument.place}: {_short(one.text)}: {_short(reason, 600)}"
        ) from error


def _short(text, most=LONGEST_SHOWN):
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
