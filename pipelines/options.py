"""A setting is declared once, as a field of the dataclass that uses it. Flag, `--help`, default,
check, error and the docs' tables come from that line.

    class Sizes(Options):
        "Model"

        num_layers: int = option(6, "Number of layers ...", at_least=1)

Modules that declare options import neither TensorFlow nor Keras: `--help` does not wait for them.
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

# What a resumed run may change of an option:
DESCRIBED = "described"  # What the task says in `Task.fixed`: the value is part of its description.
FIXED = "fixed"  # Nothing: it was decided when the run began.
TOLD = "told"  # The rest of the run does otherwise, and a line says so.
FREE = "free"  # All: when the run ends, where it lies, what is done at its end.
RESUMED = (DESCRIBED, FIXED, TOLD, FREE)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What `option` says of a field; `help` in one or two sentences.

    Attributes:
        at_least, at_most: bounds of a number, both allowed; `at_least` also of a list's choices.
        choices: of a string, or of each string of a list, in which none comes twice.
        adds: the sections that each choice adds: the fields of a corpus are options where it is
            chosen.
        path: True: the value is a path, or several joined by commas; "folder": of a folder that
            is made if there is none.
        only: by the name of another option, the values of it that this one has a use for, or a
            function that tells them from their text. One of several names is enough.
        only_words: how `only` is said, where it has functions.
        resumed: one of `RESUMED`; None: what the section says.
        on_tensorflow: whether another backend trains with the default alone.
        is_unset: whether the flag that is not given is None, and the default that of the model, of
            the run or of the command.
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
    """Declare a field of an `Options` dataclass; `more` as in `Setting`."""
    return dataclasses.field(default=default, metadata={"setting": Setting(help, **more)})


def again(kind: type["Options"], name: str, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """Declare the option of another class once more, with another default or other bounds."""
    one = settings(kind)[name]
    changed = dataclasses.replace(one.setting, **more)
    value = one.default if default is dataclasses.MISSING else default
    return dataclasses.field(default=value, metadata={"setting": changed})


def like(kind: type["Options"], without: Collection[str] = (), **defaults: Any) -> type["Options"]:
    """A section like another, without some options or with other defaults."""
    hints = typing.get_type_hints(kind)
    kept = [one for one in dataclasses.fields(kind) if one.name in {*kind.declared} - {*without}]
    namespace = {"__doc__": kind.__doc__, "needs": kind.needs}
    namespace["__annotations__"] = {one.name: hints[one.name] for one in kept}
    for one in kept:
        default = defaults.get(one.name, one.default)
        metadata = {"setting": kind.declared[one.name]}
        namespace[one.name] = dataclasses.field(default=default, metadata=metadata)
    return type(kind.__name__, (Options,), namespace)


class Declared(typing.NamedTuple):
    """An option of a class: the flag's name, which is the field's without the "_" that keeps it
    apart from Python's words; bool, int, float, str or list (of strings, in the program a tuple);
    whether it may be None; its default, None where there is none; and what is said of it.
    """

    name: str
    type: type
    is_optional: bool
    default: Any
    setting: Setting

    def check(self, value: Any) -> None:
        """Refuse a value that this option cannot have."""
        if value is None and (self.is_optional or self.setting.is_unset):
            return
        if wrong := self.wrong(value):
            raise ValueError(
                f"`{self.name}` must be {wrong}. Received: {self.name}={_shown(value)}."
            )

    def wrong(self, value: Any) -> str | None:
        """What a value must be instead, "one of a, b"; None if it is right."""
        kinds = {float: (float, int), list: (list, tuple)}.get(self.type, (self.type,))
        if not isinstance(value, kinds) or isinstance(value, bool) != (self.type is bool):
            return KINDS[self.type]
        if self.type in (int, float):
            return self._wrong_number(value)
        if (choices := self.setting.choices) is None:
            return None
        if self.type is not list:
            return None if value in choices else f"one of {', '.join(choices)}"
        is_right = len({*value} & {*choices}) == len(value) >= (self.setting.at_least or 0)
        return None if is_right else f"some of {', '.join(choices)}, each once"

    def _wrong_number(self, value):
        least = self.setting.at_least
        most = self.setting.at_most
        if not math.isfinite(value):
            return "a finite number"
        if (least is None or value >= least) and (most is None or value <= most):
            return None
        if most is None:
            return f"{KINDS[self.type]}, at least {least}"
        if least is None:
            return f"{KINDS[self.type]}, at most {most}"
        return f"{KINDS[self.type]} from {least} to {most}"


KINDS = {
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
}


@functools.cache
def settings(kind: type["Options"]) -> Mapping[str, Declared]:
    """The options of a class, by name, in their order."""
    hints = typing.get_type_hints(kind)
    declared = {}
    for field in dataclasses.fields(kind):
        if setting := kind.declared.get(field.name):
            hint = hints[field.name]
            kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
            plain = next(one for one in kinds if one is not types.NoneType)
            plain = list if typing.get_origin(plain) is tuple else plain
            name = field.name.removesuffix("_")
            declared[name] = Declared(name, plain, types.NoneType in kinds, field.default, setting)
    return types.MappingProxyType(declared)


@typing.dataclass_transform(frozen_default=True, field_specifiers=(option, again))
class Options:
    """A section of options, which is a frozen dataclass. The first line of its docstring is its
    title in `--help`.

    Attributes:
        needs: names of options, such as "task", each with the values that the section is for.
        resumed: that of the options that do not say it.
        declared: the `Setting` of each field that `option` made.
    """

    needs: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    resumed: ClassVar[str] = DESCRIBED
    declared: ClassVar[Mapping[str, Setting]] = {}

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        # Fields do not keep it where a class is made a dataclass once more.
        declared = {}
        for base in reversed(cls.__mro__[1:]):
            declared |= vars(base).get("declared", {})
        for name, field in vars(cls).items():
            if isinstance(field, dataclasses.Field) and "setting" in field.metadata:
                one = field.metadata["setting"]
                declared[name] = dataclasses.replace(one, resumed=one.resumed or cls.resumed)
        cls.declared = declared
        dataclasses.dataclass(frozen=True)(cls)
        # Of a class with these nobody could make a dataclass once more.
        del cls.__setattr__, cls.__delattr__

    def __setattr__(self, name, *value):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    __delattr__ = __setattr__

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if one := settings(type(self)).get(field.name.removesuffix("_")):
                value = getattr(self, field.name)
                one.check(value)
                if isinstance(value, list):
                    object.__setattr__(self, field.name, tuple(value))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> typing.Self:
        """Make one of a mapping, which may hold other names too; what is unset has its default."""
        given = {}
        for field in dataclasses.fields(cls):
            value = values.get(field.name.removesuffix("_"), dataclasses.MISSING)
            setting = cls.declared.get(field.name)
            is_unset = value is None and setting is not None and setting.is_unset
            if value is not dataclasses.MISSING and not is_unset:
                given[field.name] = value
        return cls(**given)

    @classmethod
    def title(cls) -> str:
        """What the section is called: its docstring's first line, up to a colon."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0].split(":")[0].rstrip(".")


Sections = Sequence[type[Options]]


class Place(typing.NamedTuple):
    """Where an option is declared: `needs` are names of options that choose, such as "task", each
    with the values that lead there, in this order.
    """

    option: Declared
    needs: tuple[tuple[str, tuple[str, ...]], ...]


def places(sections: Sections, needs: tuple = ()) -> Iterator[Place]:
    """All options of some sections, those of each choice among them."""
    for section in sections:
        for one in settings(section).values():
            yield Place(one, (*needs, *section.needs))
            for value, inner in (one.setting.adds or {}).items():
                yield from places(inner, (*needs, *section.needs, (one.name, (value,))))


def active(sections: Sections, said: Mapping[str, str]) -> dict[str, Declared]:
    """The options that exist where some values are said, by name, in their order."""
    found: dict[str, Declared] = {}
    for section in sections:
        for one in settings(section).values():
            found.setdefault(one.name, one)
            if one.setting.adds:
                inner = one.setting.adds[said.get(one.name) or one.default]
                for name, other in active(inner, said).items():
                    found.setdefault(name, other)
    return found


def unmet_only(one: Declared, said: Mapping[str, str]) -> tuple[list[str], str] | None:
    """What an option has no effect without: the names of others, in words; None: it has one."""
    # Of one that is not given nothing is known.
    only = {name: wanted for name, wanted in (one.setting.only or {}).items() if said.get(name)}
    if not only or any(
        wanted(said[name]) if callable(wanted) else said[name] in wanted
        for name, wanted in only.items()
    ):
        return None
    words = [f"--{name}={' or '.join(of)}" for name, of in only.items() if not callable(of)]
    return [*only], one.setting.only_words or " or ".join(words)


def as_text(value: Any) -> str:
    """A value as `Setting.only` takes it: a list as a flag says it, () if it is empty."""
    return ",".join(value) or "()" if isinstance(value, list | tuple) else str(value)


def recipe(sections: Sections, values: Mapping[str, Any]) -> str:
    """The options of some sections that have an effect, as a flag file says them."""
    said = {name: as_text(value) for name, value in values.items()}
    lines = []
    written: set[str] = set()
    for section in sections:
        declared = active([section], said)
        own = [
            _as_flag(one, values[name])
            for name, one in declared.items()
            if name not in written and values.get(name) is not None and not unmet_only(one, said)
        ]
        written |= declared.keys()
        if own:
            lines += [f"# {section.title()}", *own]
    return "\n".join([*lines, ""])


def _as_flag(one, value):
    if one.type is bool:
        return f"--{'' if value else 'no'}{one.name}"
    return f"--{one.name}={','.join(value) if one.type is list else value}"


def _shown(value, most=100):
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."
