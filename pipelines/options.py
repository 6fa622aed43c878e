"""Options: each is declared once, as a field of the dataclass that uses it. Its flag, `--help`,
default, check, error and the docs' tables all come from that declaration.

    class Sizes(Options):
        "Model"

        num_layers: int = option(6, "Number of layers ...", at_least=1)

Modules that declare options import neither TensorFlow nor Keras, so that `--help` is quick.
"""

import dataclasses
import functools
import sys
import types
import typing
import urllib.parse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

# Whether a resumed run may change an option:
DESCRIBED = "described"  # As `Task.fixed` says: the value is part of the run's description.
FIXED = "fixed"  # No: it was decided when the run began.
REPORTED = "reported"  # Yes, for the rest of the run, and a line reports the change.
FREE = "free"  # Yes, silently: when the run ends, where it lies, what is done at its end.
RESUMED = (DESCRIBED, FIXED, REPORTED, FREE)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The metadata of an option; `help` has one or two sentences.

    Attributes:
        at_least, at_most: inclusive bounds of a number; `at_least` also of a list's length.
        choices: the allowed values of a string, or of each string of a list without repeats.
        adds: the sections of options that each choice adds, such as the fields of the chosen
            corpus.
        path: True: the value is a path, or several joined by commas; "folder": the path of a
            folder that is made if it does not exist.
        only: maps other options to the values, or to a predicate of them as text, with which this
            option has an effect. One of several is enough.
        only_words: `only` in words, if it has predicates.
        resumed: one of `RESUMED`; None: that of the section.
        on_tensorflow: whether other backends train with the default only.
        is_unset: whether an absent flag is None, and the default is decided by the model, the run
            or the command.
    """

    help: str
    at_least: float | None = None
    at_most: float | None = None
    choices: Collection[str] | None = None
    adds: Mapping[str, Sequence[type["Options"]]] | None = None
    path: bool | str = False
    only: Mapping[str, Collection[str] | Callable[[str], bool]] | None = None
    only_words: str = ""
    resumed: str | None = None
    on_tensorflow: bool = False
    is_unset: bool = False


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare a field of an `Options` dataclass; `more` are further fields of `Setting`."""
    return dataclasses.field(default=default, metadata={"setting": Setting(help, **more)})


def again(kind: type["Options"], name: str, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """Declare another class' option again, with another default or other bounds."""
    original = settings(kind)[name]
    changed = dataclasses.replace(original.setting, **more)
    value = original.default if default is dataclasses.MISSING else default
    return dataclasses.field(default=value, metadata={"setting": changed})


def like(kind: type["Options"], without: Collection[str]) -> type["Options"]:
    """Return a copy of a section without some options."""
    hints = typing.get_type_hints(kind)
    of_options = (field for field in dataclasses.fields(kind) if "setting" in field.metadata)
    fields = [field for field in of_options if field.name not in without]
    namespace = {"__doc__": kind.__doc__, "needs": kind.needs, "resumed": kind.resumed}
    namespace["__annotations__"] = {field.name: hints[field.name] for field in fields}
    for field in fields:
        metadata = field.metadata
        namespace[field.name] = dataclasses.field(default=field.default, metadata=metadata)
    return type(kind.__name__, (Options,), namespace)


class Declared(typing.NamedTuple):
    """An option of a class. `name` is the flag's: the field's name without a final "_", which
    avoids Python's keywords. `type` is bool, int, float, str or list (of strings, kept as a tuple).
    """

    name: str
    type: type
    is_optional: bool
    default: Any
    setting: Setting

    def check(self, value: Any) -> None:
        """Raise a ValueError for a value that this option cannot have."""
        if value is None and (self.is_optional or self.setting.is_unset):
            return
        if wrong := self.wrong(value):
            raise ValueError(
                f"`{self.name}` must be {wrong}. Received: {self.name}={_shown(value)}."
            )

    def wrong(self, value: Any) -> str | None:
        """Return what a wrong value must be instead, such as "one of a, b"; None if it is right."""
        kinds = {float: (float, int), list: (list, tuple)}.get(self.type, (self.type,))
        if not isinstance(value, kinds) or isinstance(value, bool) != (self.type is bool):
            return KINDS.get(self.type, "a list")
        if self.type in (int, float):
            return self._wrong_number(value)
        least = self.setting.at_least or 0
        if (choices := self.setting.choices) is None:
            is_short = self.type is list and len(value) < least
            return f"a list of {least} or more" if is_short else None
        if self.type is not list:
            return None if value in choices else f"one of {', '.join(choices)}"
        is_right = len({*value} & {*choices}) == len(value) >= least
        return None if is_right else f"some of {', '.join(choices)}, each once"

    def _wrong_number(self, value):
        least = self.setting.at_least
        most = self.setting.at_most
        if self.type is float and not abs(value) <= sys.float_info.max:
            return "a finite number"
        if (least is None or value >= least) and (most is None or value <= most):
            fits = self.type is float or abs(value) < 2**63
            return None if fits else "an integer of 64 bits"
        if most is None:
            return f"{KINDS[self.type]}, at least {least}"
        if least is None:
            return f"{KINDS[self.type]}, at most {most}"
        return f"{KINDS[self.type]} from {least} to {most}"


KINDS = {bool: "True or False", int: "an integer", float: "a number", str: "a string"}


@functools.cache
def settings(kind: type["Options"]) -> Mapping[str, Declared]:
    """Return the options of a class by name, in order of declaration."""
    hints = typing.get_type_hints(kind)
    declared = {}
    for field in dataclasses.fields(kind):
        if setting := field.metadata.get("setting"):
            setting = dataclasses.replace(setting, resumed=setting.resumed or kind.resumed)
            hint = hints[field.name]
            kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
            plain = next(member for member in kinds if member is not types.NoneType)
            plain = list if typing.get_origin(plain) is tuple else plain
            name = field.name.removesuffix("_")
            declared[name] = Declared(name, plain, types.NoneType in kinds, field.default, setting)
    return types.MappingProxyType(declared)


@typing.dataclass_transform(frozen_default=True, field_specifiers=(option, again))
class Options:
    """A section of options: each subclass becomes a frozen dataclass. The first line of its
    docstring is its title in `--help`.

    Attributes:
        needs: names of options, such as "task", with the values that this section is for.
        resumed: the default of the options' `Setting.resumed`.
    """

    needs: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    resumed: ClassVar[str] = DESCRIBED

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        dataclasses.dataclass(frozen=True)(cls)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if hasattr(value, "item") and value.shape == ():
                value = value.item()  # A NumPy number, which JSON cannot write.
            if declared := settings(type(self)).get(field.name.removesuffix("_")):
                declared.check(value)
                value = tuple(value) if isinstance(value, list) else value
            object.__setattr__(self, field.name, value)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> typing.Self:
        """Make a section from a mapping; ignore other names, and use defaults for what is unset."""
        arguments = {}
        for field in dataclasses.fields(cls):
            value = values.get(field.name.removesuffix("_"), dataclasses.MISSING)
            setting = field.metadata.get("setting")
            is_unset = value is None and setting is not None and setting.is_unset
            if value is not dataclasses.MISSING and not is_unset:
                arguments[field.name] = value
        return cls(**arguments)

    @classmethod
    def title(cls) -> str:
        """Return the section's title: its docstring's first line, up to a colon."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0].split(":")[0].rstrip(".")


Sections = Sequence[type[Options]]


class Place(typing.NamedTuple):
    """An option and the choices that lead to it: `needs` are names of options, such as "task", with
    the values that add it, outermost first.
    """

    option: Declared
    needs: tuple[tuple[str, tuple[str, ...]], ...]


def places(sections: Sections, needs: tuple = ()) -> Iterator[Place]:
    """Yield the options of some sections, and those that any of their choices adds."""
    for section in sections:
        for declared in settings(section).values():
            yield Place(declared, (*needs, *section.needs))
            for value, inner in (declared.setting.adds or {}).items():
                yield from places(inner, (*needs, *section.needs, (declared.name, (value,))))


def active(sections: Sections, values: Mapping[str, str]) -> dict[str, Declared]:
    """Return the options of some sections and of the choices among `values`, by name, in order."""
    options: dict[str, Declared] = {}
    for section in sections:
        for declared in settings(section).values():
            options.setdefault(declared.name, declared)
            if adds := declared.setting.adds:
                inner = adds[values.get(declared.name) or declared.default]
                for name, added in active(inner, values).items():
                    options.setdefault(name, added)
    return options


def unmet_only(declared: Declared, values: Mapping[str, str]) -> tuple[list[str], str] | None:
    """Return the names of the options without which this one has no effect, and a text that says
    so; None if it has an effect. Options without a value are not judged.
    """
    only = {name: rule for name, rule in (declared.setting.only or {}).items() if values.get(name)}
    if not only or any(
        rule(values[name]) if callable(rule) else values[name] in rule
        for name, rule in only.items()
    ):
        return None
    words = [f"--{name}={' or '.join(rule)}" for name, rule in only.items() if not callable(rule)]
    return [*only], declared.setting.only_words or " or ".join(words)


def as_text(value: Any) -> str:
    """Return a value as text for `Setting.only`: a list joined by commas, or "()" if empty."""
    return ",".join(value) or "()" if isinstance(value, list | tuple) else str(value)


def recipe(sections: Sections, values: Mapping[str, Any]) -> str:
    """Return a flag file of the options of some sections that have an effect."""
    texts = {name: as_text(value) for name, value in values.items()}
    lines = []
    written: set[str] = set()
    for section in sections:
        options = active([section], texts)
        names = [name for name in options if name not in written and values.get(name) is not None]
        effective = [name for name in names if not unmet_only(options[name], texts)]
        written |= options.keys()
        if effective:
            flags = [_as_flag(options[name], values[name]) for name in effective]
            lines += [f"# {section.title()}", *flags]
    return "\n".join([*lines, ""])


def _as_flag(declared, value):
    if declared.type is bool:
        return f"--{'' if value else 'no'}{declared.name}"
    flag = f"--{declared.name}={','.join(value) if declared.type is list else value}"
    is_plain = flag == flag.strip() and " # " not in flag and "\n" not in flag
    return flag if is_plain else f"%{urllib.parse.quote(flag, safe='=/[]')}"


def _shown(value, longest=100):
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
