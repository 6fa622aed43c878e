"""How a command line and its flag files are read: strictly, wherever a flag stands."""

import difflib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags as absl_flags

from keras_transformer.flagfiles import Argument, placed
from keras_transformer.flags.groups import GROUPS
from keras_transformer.flags.path_flags import PathParser, no_folder, wrong_path
from keras_transformer.flags.scopes import CONDITIONS, foreign_to
from keras_transformer.tasks import TASKS

EVERY_FLAG = {name: flags[name] for flags in GROUPS.values() for name in flags}
LONGEST_SHOWN = 100


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


def parse(FLAGS: absl_flags.FlagValues, arguments: Sequence[str]) -> dict[str, Argument]:
    """Set the flags of a command.

    --task, --corpus and --architecture are found first, the last of each; then every flag must be
    one that the task has a use for, in the command line one of this command too. A flag file serves
    all commands of a task: what this one does not read is checked, and left.

    Args:
        FLAGS: the flags that the command reads.
        arguments: those of its command line.

    Returns:
        Where each flag that was set stands, by name.

    Raises:
        WrongFlag: naming file and line.
        OSError, ValueError: as `expand_flagfiles`.
    """
    settings = _settings(placed(arguments), FLAGS)
    task = _task(settings, FLAGS)
    if "task" in FLAGS:
        for name, default in TASKS[task].defaults.items():
            FLAGS.set_default(name, default)
    settings = _without_replaced(settings, FLAGS)
    said = _said(settings, FLAGS)
    places = {}
    for one in settings:
        _refuse_foreign(one, task, said, FLAGS)
        _check_value(one, FLAGS[one.name] if one.name in FLAGS else EVERY_FLAG[one.name])
        if one.name in FLAGS:
            _told(one, lambda one=one: FLAGS[one.name].parse(one.value))
            FLAGS[one.name].using_default_value = False
            _refuse_no_folder(one, FLAGS[one.name])
            places[one.name] = one.argument
    FLAGS.mark_as_parsed()
    return places


def _settings(arguments, FLAGS):
    """The arguments as `Setting`s, each of a flag that there is."""
    found = []
    rest = iter(arguments)
    for argument in rest:
        text = argument.text
        name, equals, value = text.removeprefix("-").removeprefix("-").partition("=")
        if not text.startswith("-") or not name:
            raise WrongFlag(
                f"{argument.place}: unexpected argument {_short(text)!r}: every argument is a "
                "flag, --name=value. See --help."
            )
        flag, negated = _flag(name, FLAGS)
        if flag is None:
            raise WrongFlag(f"{argument.place}: {_unknown(name, argument, FLAGS)}")
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


def _flag(name, FLAGS):
    """The flag of a name, and whether the name negates it."""
    for known in (FLAGS, EVERY_FLAG):
        if name in known:
            return known[name], False
        positive = name.removeprefix("no")
        if positive != name and positive in known and known[positive].boolean:
            return known[positive], True
    return None, False


def _unknown(name, argument, FLAGS):
    flag, space, value = name.partition(" ")
    if space and flag in EVERY_FLAG:
        return f"--{_short(name)} does not exist. Write --{flag}={_short(value.strip())}."
    names = [one for one in EVERY_FLAG if argument.file or one in FLAGS]
    alike = difflib.get_close_matches(name[:LONGEST_SHOWN], names, 1, 0.7)
    remedy = f"Did you mean --{alike[0]}?" if alike else "See --help."
    return f"--{_short(name)} does not exist. {remedy}"


def _task(settings, FLAGS):
    """The last task that is said; None: none is, and the command, which does not train, learns it
    from the model.
    """
    said = [one for one in settings if one.name == "task"]
    for one in said:
        _told(one, lambda one=one: EVERY_FLAG["task"].parser.parse(one.value))
    if said:
        return said[-1].value
    return FLAGS["task"].default if "task" in FLAGS else None


def _said(settings, FLAGS):
    """What each flag will be, as text, by name."""
    flags = {**EVERY_FLAG, **{name: FLAGS[name] for name in FLAGS}}
    defaults = {name: str(flag.default) for name, flag in flags.items()}
    return {**defaults, **{one.name: one.value for one in settings}}


def _without_replaced(settings, FLAGS):
    """Leave out what a flag file says for a corpus, or the like, that a later flag replaced which
    does not stand in the same file: `--flagfile=base.flags --corpus=text_files` has no --dataset.
    """
    said = _said(settings, FLAGS)
    last = {one.name: number for number, one in enumerate(settings)}

    def is_replaced(number, one):
        condition = CONDITIONS.get(one.name)
        if not one.argument.file or condition is None or condition.holds(said):
            return False
        later = [last[name] for name in condition.on if last.get(name, -1) > number]
        return any(settings[place].argument.file != one.argument.file for place in later)

    return [one for number, one in enumerate(settings) if not is_replaced(number, one)]


def _refuse_foreign(one, task, said, FLAGS):
    """Refuse a flag that has no use here."""
    place = one.argument.place
    if use := foreign_to(one.name, task, said["architecture"]):
        raise WrongFlag(f"{place}: --{one.name} is for {use}. Leave it out.")
    if one.name not in FLAGS:
        if not one.argument.file:
            raise WrongFlag(f"{place}: --{one.name} is a flag of other commands. Leave it out.")
        return
    condition = CONDITIONS.get(one.name)
    if condition and not condition.holds(said):
        came = ", ".join(f"--{name}={_short(said[name])}" for name in condition.on)
        raise WrongFlag(
            f"{place}: --{one.name} is for {condition.words}. Received: {came}. Leave it out."
        )


def _check_value(one, flag):
    """Refuse what no flag of the kind may be, whoever reads it."""
    value = _told(one, lambda: flag.parser.parse(one.value))
    if isinstance(value, float) and not math.isfinite(value):
        raise WrongFlag(f"{one.argument.place}: {one.text} must be a finite number.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise WrongFlag(f"{one.argument.place}: {_short(one.text)} is beyond all whole numbers.")
    if isinstance(flag.parser, PathParser) and (wrong := wrong_path(value)):
        raise WrongFlag(f"{one.argument.place}: {_short(one.text)}: {wrong}")


def _refuse_no_folder(one, flag):
    is_folder = isinstance(flag.parser, PathParser) and flag.parser.is_folder
    if is_folder and (wrong := no_folder(flag.value)):
        raise WrongFlag(f"{one.argument.place}: {_short(one.text)}: {wrong}")


def _told(one, read) -> Any:
    """Read a value; if it is wrong, say where it stands."""
    try:
        return read()
    except (absl_flags.Error, ValueError, TypeError, OverflowError) as error:
        reason = str(error).removeprefix(f"flag {one.text}: ")
        raise WrongFlag(
            f"{one.argument.place}: {_short(one.text)}: {_short(reason, 600)}"
        ) from error


def _short(text, most=LONGEST_SHOWN):
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
