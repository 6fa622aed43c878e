"""The laws of the house, read from the source: who imports whom, who knows TensorFlow, where flags
live.
"""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
OURS = ("keras_transformer", "pipelines")
ANYTHING = OURS
COMMANDS = (
    "align",
    "average",
    "evaluate",
    "export",
    "prepare",
    "score",
    "serve",
    "train",
    "translate",
)


def ours(*rooms):
    return [f"keras_transformer.{room}" for room in rooms]


GROUND = ["pipelines.special_ids", "pipelines.whole_files"]
# Law 1: what each room may import of ours, besides itself. The longest name that fits a module
# is its room.
MAY_IMPORT = {
    "pipelines": [],
    **dict.fromkeys(ours("layers", "decoding", "training"), GROUND),
    "keras_transformer.evaluation": [],
    "keras_transformer.models": [*GROUND, *ours("layers")],
    "keras_transformer.runs": ["pipelines", *ours("models", "training")],
    "keras_transformer.translator": ["pipelines", *ours("decoding", "models", "runs")],
    "keras_transformer.artifacts": [
        "pipelines",
        *ours("__version__", "decoding", "layers", "models", "runs", "translator"),
    ],
    "keras_transformer.tasks": [
        "pipelines",
        *ours("artifacts", "decoding", "evaluation", "models", "runs", "training", "translator"),
    ],
    # The server knows SavedModels only, whoever made them.
    "keras_transformer.server": ours("runs.session", "runs.versions"),
    "keras_transformer.serve": ours("flags", "server", "startup"),
    **dict.fromkeys(ours(*(command for command in COMMANDS if command != "serve")), ANYTHING),
    "keras_transformer.streams": ["pipelines"],
    "keras_transformer.startup": [],
    "keras_transformer.flags": ours("flagfiles", "startup"),
    "keras_transformer.flagfiles": [],
    "keras_transformer.__init__": [],
}
# Law 5. Distribution is TensorFlow's.
WITHOUT_TENSORFLOW = (
    "keras_transformer.layers",
    "keras_transformer.models",
    "keras_transformer.training",
)
WITH_TENSORFLOW = "keras_transformer.training.replicas"
NAMES_ITS_SECTION = (
    "keras_transformer.layers",
    "keras_transformer.models",
    "keras_transformer.training",
    "keras_transformer.decoding",
)
NO_NAMES = {"utils", "util", "helpers", "helper", "misc", "common"}
MOST_LINES = 250


def within(name, rooms):
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def imports(module, tree):
    """Full names of all that a module imports, wherever in it; a relative import is resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = ".".join(module.split(".")[: -node.level]) if node.level else None
            base = ".".join(filter(None, (origin, node.module)))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def defines_flags(tree):
    names = (
        getattr(node, "attr", None) or getattr(node, "id", None) or "" for node in ast.walk(tree)
    )
    return any(name.startswith("DEFINE_") for name in names)


def offences(module, source):
    """Which laws a module breaks, in words."""
    tree = ast.parse(source)
    rooms = [room for room in MAY_IMPORT if within(module, [room])]
    if not rooms:
        yield "has no floor in MAY_IMPORT"
    room = max(rooms, key=len, default="")
    allowed = [room, *MAY_IMPORT[room]] if room else ANYTHING
    for name in imports(module, tree):
        if within(name, OURS) and not within(name, allowed):
            yield f"imports {name}"
        if (
            within(name, ["tensorflow"])
            and within(module, WITHOUT_TENSORFLOW)
            and not within(module, WITH_TENSORFLOW)
        ):
            yield "imports tensorflow"
        if within(name, ["absl"]) and not within(module, ["keras_transformer.flags"]):
            yield "reads flags by itself"
    if defines_flags(tree) and not within(module, ["keras_transformer.flags"]):
        yield "defines a flag"
    if NO_NAMES & set(module.split(".")):
        yield "has a name that says nothing"
    if within(module, NAMES_ITS_SECTION) and not re.search(
        r"\b(sections?|figure|table) \d", ast.get_docstring(tree) or "", re.IGNORECASE
    ):
        yield "does not name its section of the paper"
    if len(source.splitlines()) > MOST_LINES:
        yield f"has more than {MOST_LINES} lines"


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for package in OURS
    for path in sorted((ROOT / package).rglob("*.py"))
}


@pytest.mark.parametrize("module", list(MODULES))
def test_a_module_keeps_the_laws_of_the_house(module):
    assert list(offences(module, MODULES[module].read_text(encoding="utf-8"))) == []


DOCSTRING = '"""Section 3."""\n'


@pytest.mark.parametrize(
    ("module", "source", "offence"),
    [
        (
            "keras_transformer.layers.x",
            "from keras_transformer.models import Transformer",
            "imports keras_transformer.models.Transformer",
        ),
        (
            "keras_transformer.layers.x",
            "from keras_transformer import training",
            "imports keras_transformer.training",
        ),
        (
            "keras_transformer.layers.x",
            "from ..decoding import beam",
            "imports keras_transformer.decoding.beam_search",
        ),
        (
            "keras_transformer.training.x",
            "import keras_transformer.layers.masks",
            "imports keras_transformer.layers.masks",
        ),
        ("keras_transformer.evaluation.x", "import keras_transformer", "imports keras_transformer"),
        (
            "keras_transformer.models.x",
            "import keras_transformer.flags as f",
            "imports keras_transformer.flags",
        ),
        (
            "keras_transformer.decoding.x",
            "def f():\n    from pipelines.vocabulary import EOS",
            "imports pipelines.vocabulary.EOS",
        ),
        (
            "keras_transformer.translator.x",
            "from keras_transformer.train import main",
            "imports keras_transformer.train.main",
        ),
        (
            "keras_transformer.translator.x",
            "from pipelines import batching",
            "imports pipelines.batching",
        ),
        (
            "keras_transformer.server.x",
            "from keras_transformer.serving import translator",
            "imports keras_transformer.translator.translator",
        ),
        (
            "keras_transformer.serve",
            "from keras_transformer import models",
            "imports keras_transformer.models",
        ),
        (
            "pipelines.corpora.x",
            "import keras_transformer.decoding",
            "imports keras_transformer.decoding",
        ),
        (
            "keras_transformer.training.loss",
            "from tensorflow.math import exp",
            "imports tensorflow",
        ),
        (
            "keras_transformer.layers.x",
            "try:\n    import tensorflow as tf\nexcept ImportError:\n    pass",
            "imports tensorflow",
        ),
        ("keras_transformer.train", "from absl import flags", "reads flags by itself"),
        ("keras_transformer.train", "flags.DEFINE_string('x', None, '')", "defines a flag"),
        ("pipelines.utils", "", "has a name that says nothing"),
        ("keras_transformer.helpers.x", "", "has a name that says nothing"),
        ("keras_transformer.attic", "", "has no floor in MAY_IMPORT"),
        ("pipelines.long", "x = 1\n" * 251, "has more than 250 lines"),
    ],
)
def test_control_an_offending_source_is_reported(module, source, offence):
    assert offence in list(offences(module, DOCSTRING + source))


@pytest.mark.parametrize("docstring", ["", '"""Adds two numbers."""'])
def test_control_a_layer_that_does_not_say_what_it_implements_is_reported(docstring):
    assert list(offences("keras_transformer.layers.x", docstring)) == [
        "does not name its section of the paper"
    ]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "keras_transformer.layers.x",
            "from keras import ops\nfrom keras_transformer.layers.masks import causal_mask\nfrom "
            ". import masks",
        ),
        (
            "keras_transformer.translator.x",
            "from keras_transformer.training import checkpoint\nfrom pipelines.vocabulary import "
            "Vocabulary",
        ),
        ("keras_transformer.decoding.x", "import tensorflow as tf"),
        (
            "keras_transformer.train",
            "from pipelines import batching\nfrom keras_transformer import flags, models",
        ),
    ],
)
def test_control_a_lawful_source_is_not_reported(module, source):
    assert list(offences(module, DOCSTRING + source)) == []


def test_every_room_was_read():
    assert [
        room for room in MAY_IMPORT if not any(within(module, [room]) for module in MODULES)
    ] == []
