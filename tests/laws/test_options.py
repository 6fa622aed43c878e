"""Law: a setting is declared once, in the dataclass that uses it, and flags are made of that."""

import ast
import dataclasses
import math
import pathlib

import pytest
from command_flags import EVERY_FLAG

from keras_transformer.flags.scopes import COMMANDS, every_place
from keras_transformer.tasks import TASKS, TRAINING
from pipelines.options import Options, like, option, places, settings

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for room in ("keras_transformer", "pipelines")
    for path in sorted((ROOT / room).rglob("*.py"))
}


def repeated_defaults(source):
    """Fields of sections that have an option's name, and a default of their own."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        fields = {
            field.target.id: ast.unparse(field.value)
            for field in node.body
            if isinstance(field, ast.AnnAssign)
            and field.value is not None
            and "ClassVar" not in ast.unparse(field.annotation)
        }
        if any(value.startswith(DECLARING) for value in fields.values()):
            plain = [name for name, value in fields.items() if not value.startswith(NO_DEFAULT)]
            yield from (f"{node.name}.{name}" for name in plain if name in EVERY_FLAG)


DECLARING = ("option(", "again(")
NO_DEFAULT = (*DECLARING, "dataclasses.field(kw_only=True)")
# The name of an architecture in a description, not the option that chooses one; the seed of drawn
# translations, which is another option's value.
OTHER_THINGS = {
    *("Hyperparameters.architecture", "RecurrentHyperparameters.architecture"),
    *("ConvolutionalHyperparameters.architecture", "DecodingOptions.seed"),
    *("DecodingOptions.source_language", "DecodingOptions.target_language"),
}


def test_no_default_of_an_option_is_written_twice():
    repeated = {name for source in SOURCES.values() for name in repeated_defaults(source)}
    assert repeated <= OTHER_THINGS


def test_control_a_second_default_is_found():
    source = "class A:\n    dropout: float = option(0.1, 'Dropout.')\n    "
    assert list(repeated_defaults(f"{source}num_layers: int = 6")) == ["A.num_layers"]
    for value in ("again(B, 'num_layers')", "dataclasses.field(kw_only=True)"):
        assert list(repeated_defaults(f"{source}num_layers: int = {value}")) == []
    for field in ("num_layers: int", "model: ClassVar[str] = 'T'", "own: int = 6"):
        assert list(repeated_defaults(source + field)) == []


def test_each_option_is_read_by_some_command():
    declared = set()
    for task in TASKS.values():
        sections = (*TRAINING, *task.options, *task.export_options)
        declared |= {place.option.name for place in places(sections)}
    assert declared < every_place().keys()
    assert len(COMMANDS) == 17
    # A control: an option that no command reads has no place.
    assert "d_modle" not in every_place()


# Sections of options, and the values that they refuse.
class Room(Options):
    """Room.

    More of it.
    """

    chairs: int = option(4, "Number of chairs.", at_least=1)
    share: float = option(0.5, "Share of light.", at_least=0, at_most=1)
    name: str | None = option(None, "Name.")
    colour: str = option("red", "Colour.", choices=("red", "blue"))
    is_open: bool = option(True, "Whether it is open.")
    guests: tuple[str, ...] = option(("a",), "Guests.")
    doors: tuple[str, ...] = option(("north",), "Doors.", choices=("north", "south"), at_least=1)
    height: float = option(2.0, "Height.", is_unset=True)
    plain: int = 7


class Hall(Room):
    """Hall."""

    chairs: int = option(40, "Number of chairs.", at_least=9)


def test_a_section_is_frozen_and_inherits_options():
    assert (Hall(), Hall().chairs) == (Hall.of({"height": None}), 40)
    assert [settings(kind)["chairs"].setting.at_least for kind in (Room, Hall)] == [1, 9]
    assert settings(Hall)["share"] == settings(Room)["share"]
    for section in (Room(), Hall()):
        with pytest.raises(dataclasses.FrozenInstanceError, match="chairs"):
            section.chairs = 10
        with pytest.raises(dataclasses.FrozenInstanceError, match="chairs"):
            del section.chairs


def test_a_section_takes_a_value_of_each_kind():
    room = Room.of({"chairs": 2, "name": "x", "height": None, "of_others": 3, "plain": 1})
    assert room == Room(chairs=2, name="x", plain=1)
    assert room.height == 2.0
    assert Room.of({"share": 1}).share == 1
    assert Room.of({"doors": ["south", "north"]}).doors == ("south", "north")
    expected = [*("chairs", "share", "name", "colour", "is_open", "guests", "doors", "height")]
    assert list(settings(Room)) == expected
    assert [settings(Room)[name].type for name in ("chairs", "name", "guests")] == [int, str, list]
    assert settings(Room)["name"].is_optional
    assert not settings(Room)["chairs"].is_optional


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chairs": 0}, "`chairs` must be an integer, at least 1. Received: chairs=0."),
        ({"chairs": True}, "`chairs` must be an integer. Received: chairs=True."),
        ({"chairs": 2.5}, "`chairs` must be an integer. Received: chairs=2.5."),
        ({"chairs": None}, "`chairs` must be an integer. Received: chairs=None."),
        ({"share": 1.5}, "`share` must be a number from 0 to 1. Received: share=1.5."),
        ({"chairs": 2**63}, f"`chairs` must be an integer of 64 bits. Received: chairs={2**63}."),
        ({"share": math.nan}, "`share` must be a finite number. Received: share=nan."),
        (
            {"share": 10**400},
            f"`share` must be a finite number. Received: share=1{'0' * 96}....",
        ),
        ({"share": "x"}, "`share` must be a number. Received: share='x'."),
        ({"colour": "green"}, "`colour` must be one of red, blue. Received: colour='green'."),
        ({"is_open": 1}, "`is_open` must be True or False. Received: is_open=1."),
        ({"guests": "a"}, "`guests` must be a list. Received: guests='a'."),
        *(
            (
                {"doors": doors},
                f"`doors` must be some of north, south, each once. Received: doors={doors}.",
            )
            for doors in (["east"], ["north", "east"], ["north", "north"], [])
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(values, message):
    with pytest.raises(ValueError) as error:
        Room(**values)
    assert str(error.value) == message


def test_a_section_is_made_like_another():
    small = like(Room, without=("guests", "name"))
    assert [*settings(small)] == ["chairs", "share", "colour", "is_open", "doors", "height"]
    assert small.title() == Room.title() == "Room"
    assert settings(small)["chairs"].setting == settings(Room)["chairs"].setting
    with pytest.raises(ValueError, match="at least 1"):
        small(chairs=0)
