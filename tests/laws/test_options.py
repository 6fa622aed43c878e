"""Law: a setting is declared once, in the dataclass that uses it, and flags are made of that."""

import ast
import pathlib

import pytest
from command_flags import EVERY_FLAG

from keras_transformer.flags.scopes import COMMANDS, every_place
from keras_transformer.tasks import TASKS, TRAINING
from pipelines.options import places

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for room in ("keras_transformer", "pipelines")
    for path in sorted((ROOT / room).rglob("*.py"))
}


def definitions(source):
    """Calls of absl's DEFINE functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("DEFINE"):
            yield node.attr


def test_flags_are_defined_in_one_place():
    found = [path for path, source in SOURCES.items() if list(definitions(source))]
    assert found == ["keras_transformer/flags/definition.py"]


def test_control_a_flag_that_is_defined_by_hand_is_found():
    assert list(definitions("flags.DEFINE_string('x', None, 'X.')")) == ["DEFINE_string"]


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


def test_no_default_of_an_option_stands_twice():
    found = {name for source in SOURCES.values() for name in repeated_defaults(source)}
    assert found <= OTHER_THINGS


@pytest.mark.parametrize(
    ("field", "count"),
    [
        ("num_layers: int = 6", 1),
        ("num_layers: int = again(B, 'num_layers')", 0),
        ("num_layers: int = dataclasses.field(kw_only=True)", 0),
        ("num_layers: int", 0),
        ("model: ClassVar[str] = 'T'", 0),
        ("own: int = 6", 0),
    ],
)
def test_control_a_second_default_is_found(field, count):
    source = f"class A:\n    dropout: float = option(0.1, 'Dropout.')\n    {field}\n"
    assert len(list(repeated_defaults(source))) == count


def test_each_option_is_some_command_s():
    declared = set()
    for task in TASKS.values():
        sections = (*TRAINING, *task.options, *task.export_options)
        declared |= {place.option.name for place in places(sections)}
    assert declared < every_place().keys()
    assert len(COMMANDS) == 17
    # A control: an option that no command reads has no place.
    assert "d_modle" not in every_place()
