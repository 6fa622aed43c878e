"""The laws of the house, read from the source: who imports whom, what files are called."""

import ast
import collections
import functools
import graphlib
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
OURS = ("keras_transformer", "pipelines")
COMMANDS = (
    *("align", "average", "distill", "evaluate", "export", "generate", "import_model", "parse"),
    *("predict", "prepare", "score", "serve", "train", "translate", "translate_corpus", "tune"),
    "visualize",
)


def ours(*rooms):
    return [f"keras_transformer.{room}" for room in rooms]


GROUND = [
    *("pipelines.needing", "pipelines.options", "pipelines.special_ids"),
    *("pipelines.whole_files", "pipelines.random_numbers"),
]
# Law 1: what each room may import of ours, besides itself. The longest name that fits a module
# is its room.
MAY_IMPORT = {
    "pipelines": [],
    "pipelines.vocabularies": [*GROUND, "pipelines.json_files"],
    "pipelines.trees": ["pipelines.needing", "pipelines.special_ids", "pipelines.vocabularies"],
    "pipelines.batches": [*GROUND, "pipelines.dropped", "pipelines.vocabularies"],
    "pipelines.corpora": [
        *(*GROUND, "pipelines.json_files", "pipelines.dropped", "pipelines.vocabularies"),
        *("pipelines.trees", "pipelines.batches", "pipelines.line_files"),
    ],
    "pipelines.documents": ["pipelines.vocabularies.protected_spans"],
    "pipelines.prepare": ["pipelines"],
    "keras_transformer.layers": [*GROUND, *ours("first_use")],
    "keras_transformer.decoding": [*GROUND, *ours("first_use")],
    "keras_transformer.training": GROUND,
    "keras_transformer.evaluation": ["pipelines.options", "pipelines.trees"],
    "keras_transformer.models": [*GROUND, *ours("first_use", "layers")],
    "keras_transformer.imports": ["pipelines", *ours("models")],
    "keras_transformer.saved_models": [
        "pipelines",
        *ours("__version__", "models", "tensorflow_errors"),
    ],
    "keras_transformer.runs": ["pipelines", *ours("models", "saved_models", "training")],
    "keras_transformer.inference": [
        "pipelines",
        *ours("decoding", "models", "runs", "saved_models", "tensorflow_errors"),
    ],
    "keras_transformer.tasks": [
        "pipelines",
        *ours("decoding", "evaluation", "imports", "inference", "models", "runs", "saved_models"),
        *ours("training"),
    ],
    "keras_transformer.visualization": [
        "pipelines",
        *ours("decoding", "evaluation", "inference", "layers", "models", "runs", "saved_models"),
        *ours("tasks", "training"),
    ],
    # The server knows SavedModels only, whoever made them.
    "keras_transformer.server": [
        "pipelines.options",
        *("pipelines.glossary", "pipelines.vocabularies.protected_spans"),
        *ours("saved_models.session", "saved_models.signature", "saved_models.versions"),
        *ours("__version__", "decoding", "inference.portable"),
        *ours("startup", "tensorflow_errors"),
    ],
    "keras_transformer.serve": ["pipelines.needing", *ours("flags", "server", "startup")],
    **dict.fromkeys(ours(*(command for command in COMMANDS if command != "serve")), OURS),
    "keras_transformer.streams": ["pipelines"],
    "keras_transformer.startup": ours("tensorflow_errors"),
    "keras_transformer.tensorflow_errors": [],
    # Sections of options lie with those who use them; a test says that --help loads no TensorFlow.
    "keras_transformer.flags": OURS,
    "keras_transformer.flagfiles": [],
    "keras_transformer.__init__": ours("first_use"),
    "keras_transformer.first_use": [],
}
# Law 5. Distribution is TensorFlow's.
WITHOUT_TENSORFLOW = ours("layers", "models", "training")
WITH_TENSORFLOW = ours(
    *("training.replicas", "training.train_function", "training.objective", "training.cost")
)
NAMES_ITS_SECTION = ours("layers", "models", "training", "decoding")
SECTION = re.compile(r"\b(sections?|figure|table) \d", re.IGNORECASE)
# This module decides whether a path is a run, a checkpoint or a SavedModel.
RESOLVER = "keras_transformer.runs.model_path"
DEFINES_FLAGS = "keras_transformer.flags.definition"
# One place sets the weights of a run. Its folder reads a checkpoint; the end of a training has its
# model already.
SET_WEIGHTS = ours("inference.loading", "runs.folder", "runs.run")
NO_NAMES = {
    *("utils", "util", "helpers", "helper", "misc", "common"),
    *("examination", "trial", "attending", "reading", "seeing"),
}
# Words that name nothing by themselves: not for any function, class, variable or argument.
EMPTY = {
    *("asked", "done", "drawn", "found", "given", "got", "kept", "known", "made", "one", "ones"),
    *("other", "others", "said", "seen", "such", "taken", "thing", "things", "told", "wanted"),
    "what",
}
# Participles that a variable may have: not for a public function, method or class.
BARE = {"allowed", "barred", "lacking", "meant", "needed", "shown"}
MOST_LINES = 300
# Of a command: flags in, calls out.
MOST_LINES_OF_A_COMMAND = 100


parsed = functools.cache(ast.parse)


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
    names = (getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree))
    return any(name.startswith("DEFINE") for name in names)


def sets_weights(tree):
    """Whether something calls `load_weights`, on anything but `super()`."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    methods = (func for func in calls if getattr(func, "attr", "") == "load_weights")
    return any(not isinstance(method.value, ast.Call) for method in methods)


def decides_what_a_path_is(tree):
    """Whether a module compares something with the end of a checkpoint's name."""
    asking = (node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.Call))
    parts = (part for node in asking for part in ast.iter_child_nodes(node))
    return any(isinstance(part, ast.Constant) and part.value == ".npz" for part in parts)


def public_names(tree):
    """Names of a module's functions and classes, and of their methods."""
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from public_names(node)


def bound_names(tree):
    """Names of all functions, classes, arguments, variables and attributes of a module."""
    for node in ast.walk(tree):
        is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if is_stored or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg):
            keys = {"name", "arg", "id", "attr"} & {*node._fields}
            yield from (getattr(node, key) for key in keys)


def empty_names(tree):
    return [name for name in bound_names(tree) if name.strip("_") in EMPTY]


def parallel_assignments(tree):
    """Lines such as `a, b = 1, 2`."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    ]


def foreign_imports(module, tree):
    room = max((room for room in MAY_IMPORT if within(module, [room])), key=len, default="")
    if not room:
        yield "has no floor in MAY_IMPORT"
        return
    allowed = [room, *MAY_IMPORT[room]]
    may_know_tensorflow = within(module, WITH_TENSORFLOW) or not within(module, WITHOUT_TENSORFLOW)
    for name in imports(module, tree):
        if within(name, OURS) and not within(name, allowed):
            yield f"imports {name}"
        if within(name, ["tensorflow"]) and not may_know_tensorflow:
            yield "imports tensorflow"
        if within(name, ["absl"]) and not within(module, ours("flags")):
            yield "reads flags by itself"


def offences(module, source):
    """Which laws a module breaks, in words."""
    tree = parsed(source)
    yield from foreign_imports(module, tree)
    if defines_flags(tree) != (module == DEFINES_FLAGS):
        yield "defines a flag"
    if sets_weights(tree) != (module in SET_WEIGHTS):
        yield "sets the weights of a run"
    if decides_what_a_path_is(tree) and module != RESOLVER:
        yield "decides by itself what a path leads to"
    if NO_NAMES & set(module.split(".")):
        yield "has a name that says nothing"
    bare = [name for name in public_names(tree) if name.lower() in BARE | EMPTY]
    bare += empty_names(tree)
    yield from (f"calls something {name}, and not what" for name in bare)
    if within(module, NAMES_ITS_SECTION) and not SECTION.search(ast.get_docstring(tree) or ""):
        yield "does not name its section of the paper"
    most = MOST_LINES_OF_A_COMMAND if module in ours(*COMMANDS) else MOST_LINES
    if len(source.splitlines()) > most:
        yield f"has more than {most} lines"
    yield from (f"assigns in parallel in line {line}" for line in parallel_assignments(tree))


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for package in OURS
    for path in sorted((ROOT / package).rglob("*.py"))
}
SOURCES = {module: path.read_text(encoding="utf-8") for module, path in MODULES.items()}


def test_each_module_keeps_the_laws_of_the_house():
    all_faults = {module: list(offences(module, source)) for module, source in SOURCES.items()}
    assert {module: faults for module, faults in all_faults.items() if faults} == {}


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "notebooks"])
def test_other_code_names_what_things_are(folder):
    paths = [*(ROOT / folder).rglob("*.py")]
    empty = {path: empty_names(ast.parse(path.read_text("utf-8"))) for path in paths}
    assert {path: names for path, names in empty.items() if names} == {}
    assert empty_names(ast.parse("for one in lines: pass")) == ["one"]  # control


@pytest.mark.parametrize(
    ("module", "source", "offence"),
    [
        ("layers.x", "from keras_transformer.models import A", f"imports {ours('models.A')[0]}"),
        ("layers.x", "from ..decoding import loop", f"imports {ours('decoding.loop')[0]}"),
        ("evaluation.x", "import keras_transformer", "imports keras_transformer"),
        ("models.x", "import keras_transformer.flags as f", f"imports {ours('flags')[0]}"),
        ("decoding.x", "def f():\n    from pipelines.trees import a", "imports pipelines.trees.a"),
        ("training.loss", "from tensorflow.math import exp", "imports tensorflow"),
        ("train", "from absl import flags", "reads flags by itself"),
        ("train", "flags.DEFINE_string('x', None, '')", "defines a flag"),
        ("train", "folder.load_weights(model)", "sets the weights of a run"),
        ("tasks.x", "path.suffix == '.npz'", "decides by itself what a path leads to"),
        ("helpers.x", "", "has a name that says nothing"),
        ("evaluation.x", "class A:\n def told(self): pass", "calls something told, and not what"),
        ("evaluation.x", "class A:\n def shown(self): pass", "calls something shown, and not what"),
        ("evaluation.x", "def f(one): pass", "calls something one, and not what"),
        ("evaluation.x", "a._found, b = f()", "calls something _found, and not what"),
        ("attic", "", "has no floor in MAY_IMPORT"),
        ("layers.x", "", "does not name its section of the paper"),
        ("training.x", "x = 1\n" * 300, "has more than 300 lines"),
        ("train", "x = 1\n" * 100, "has more than 100 lines"),
        ("train", "a, b = 1, 2", "assigns in parallel in line 2"),
    ],
)
def test_control_an_offending_source_is_reported(module, source, offence):
    source = f'"""Adds two numbers."""\n{source}'
    assert offence in list(offences(f"keras_transformer.{module}", source))


def test_every_room_was_read():
    unread = [room for room in MAY_IMPORT if not any(within(module, [room]) for module in MODULES)]
    assert unread == []


def circle(edges):
    """Names along a circle of a graph {name: names that it imports}; none if there is none."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def edges_between(sources, place):
    """Who imports whom among the modules; `place` says where each of them counts."""
    edges = collections.defaultdict(set)
    for module, source in sources.items():
        for name in imports(module, parsed(source)):
            # `from a.b import c` names a module or what is in it.
            target = next((n for n in (name, name.rpartition(".")[0]) if n in sources), None)
            if target and place(target) != place(module):
                edges[place(module)].add(place(target))
    return edges


def package(module):
    """The package of a module, one below ours; the module itself if it lies directly in ours."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("place", [lambda module: module, package], ids=["modules", "packages"])
def test_no_imports_run_in_a_circle(place):
    assert circle(edges_between(SOURCES, place)) == []


def test_control_a_circle_is_found():
    sources = {"p.a.x": "import p.b.y", "p.b.y": "from p.c import z", "p.c.z": "from p.a import w"}
    sources["p.a.w"] = ""
    assert circle(edges_between(sources, lambda module: module)) == []
    assert len(circle(edges_between(sources, package))) == 4


# Files of each subject's folder: the folder says which subject they are of.
OF_EACH_SUBJECT = {"__init__", "options", "task", "module", "score"}


def namesakes(modules):
    """Names of files that stand in two folders."""
    stems = collections.Counter(module.rpartition(".")[2] for module in modules)
    return sorted(stem for stem, n in stems.items() if n > 1 and stem not in OF_EACH_SUBJECT)


def test_no_two_files_have_the_same_name():
    assert namesakes(MODULES) == []
    assert namesakes(["a.loss", "b.loss", "a.__init__", "b.__init__"]) == ["loss"]  # a control
