"""A pair of sentences walks from `train --flagfile=toy.flags` to its first gradient by few stays:
who reads along turns few pages.
"""

import ast
import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("walk.py")
ROOT = PROGRAM.parents[2]
# Lower a bound that the code has come below. They were 398, 77, 250 and 16 before imported models,
# fine-tuning, protected spans, languages of a request, augmentation and the table of a step, which
# an export lays out when it is loaded, lay on the way.
MOST = {"functions": 421, "files": 84, "stays": 270, "rooms": 16}


def room(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def stays(calls, classes=lambda path: ()):
    """[(file, functions)]: a file that is entered, and what is called in it for the first time.
    What only Python calls, such as a comprehension or a class's body, is left out.
    """
    visits = []
    for path, function in calls:
        last = function.split(".")[-1]
        if last.startswith("<") or last in classes(path):
            continue
        if not visits or visits[-1][0] != path:
            visits.append((path, []))
        visits[-1][1].append(function)
    return visits


def counts(visits):
    files = collections.Counter(path for path, _ in visits)
    return {
        "functions": sum(len(functions) for _, functions in visits),
        "files": len(files),
        "stays": len(visits),
        "rooms": len({room(path) for path in files}),
    }


def classes_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


@pytest.mark.slow
def test_the_walk_to_the_first_gradient_is_short(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, str(PROGRAM), str(tmp_path)]
    process = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr.decode()
    classes = {}
    calls = json.loads(process.stdout.splitlines()[-1])
    visits = stays(calls, lambda path: classes.setdefault(path, classes_in(path)))
    listed = "\n".join(f"{path} {' '.join(functions)}" for path, functions in visits)
    too_long = {name: count for name, count in counts(visits).items() if count > MOST[name]}
    assert too_long == {}, listed
    # The walk was followed from the first import to the layers.
    expected = ["keras_transformer/first_use.py", "keras_transformer/__init__.py"]
    assert [path for path, _ in visits[:2]] == expected
    assert any(path.startswith("keras_transformer/layers/") for path, _ in visits)


def test_control_a_file_that_is_entered_twice_is_two_stays():
    calls = [("a/b/c.py", "f"), ("a/b/c.py", "C.<genexpr>"), ("d/e.py", "g"), ("a/b/c.py", "C.h")]
    visits = stays([*calls, ("a/b/c.py", "C")], lambda path: {"C"})
    assert visits == [("a/b/c.py", ["f"]), ("d/e.py", ["g"]), ("a/b/c.py", ["C.h"])]
    assert counts(visits) == {"functions": 3, "files": 2, "stays": 3, "rooms": 2}
