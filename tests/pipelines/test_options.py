import dataclasses
import math

import pytest

from pipelines.options import Options, like, option, settings


@dataclasses.dataclass(frozen=True)
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


def test_a_section_is_frozen_whether_or_not_it_is_decorated_too():
    assert (Hall(), Hall().chairs) == (Hall.of({"height": None}), 40)
    assert [settings(kind)["chairs"].setting.at_least for kind in (Room, Hall)] == [1, 9]
    assert settings(Hall)["share"] == settings(Room)["share"]
    for section in (Room(), Hall()):
        with pytest.raises(dataclasses.FrozenInstanceError, match="chairs"):
            section.chairs = 10
        with pytest.raises(dataclasses.FrozenInstanceError, match="chairs"):
            del section.chairs


def test_a_value_of_each_kind():
    room = Room.of({"chairs": 2, "name": "x", "height": None, "of_others": 3, "plain": 1})
    assert room == Room(chairs=2, name="x", plain=1)
    assert room.height == 2.0
    assert Room.of({"share": 1}).share == 1
    assert Room.of({"doors": ["south", "north"]}).doors == ("south", "north")
    assert list(settings(Room)) == [
        *("chairs", "share", "name", "colour", "is_open", "guests", "doors", "height")
    ]
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
        ({"share": math.nan}, "`share` must be a finite number. Received: share=nan."),
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
def test_what_is_refused(values, message):
    with pytest.raises(ValueError) as error:
        Room(**values)
    assert str(error.value) == message


def test_a_section_like_another():
    small = like(Room, without=("guests", "name"), chairs=100)
    assert [*settings(small)] == ["chairs", "share", "colour", "is_open", "doors", "height"]
    assert small().chairs == 100
    assert small.title() == Room.title() == "Room"
    assert settings(small)["chairs"].setting == settings(Room)["chairs"].setting
    with pytest.raises(ValueError, match="at least 1"):
        small(chairs=0)
