"""The page's own arithmetic, run by node: a tree has the places that Python gives it."""

import json
import pathlib
import random
import shutil
import subprocess

import pytest

from keras_transformer.visualization import tree_drawings
from pipelines.trees import Tree, escaped, parse

pytest.importorskip("fastapi")
if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)

from keras_transformer.server import app

GAP = 1.5
PROGRAM = """
const size = (text) => text.length;
for (const line of require("fs").readFileSync(0, "utf-8").split("\\n").filter((line) => line)) {
  const found = places(readTree(line), size, 1.5).places;
  console.log(JSON.stringify(found.map((one) =>
    [one.text, one.isWord, one.x, one.level, found.indexOf(one.parent)])));
}
"""


def places_in_node(brackets):
    script = (pathlib.Path(app.PAGE) / "tree.js").read_text(encoding="utf-8")
    done = subprocess.run(
        [shutil.which("node"), "-e", script + PROGRAM],
        input="\n".join(brackets).encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def places_in_python(brackets):
    found = tree_drawings.places(parse(brackets), len, GAP)
    numbers = {id(place): number for number, place in enumerate(found)} | {id(None): -1}
    return [
        [one.text, one.is_word, pytest.approx(one.middle), one.level, numbers[id(one.parent)]]
        for one in found
    ]


def drawn_tree(draw, depth):
    if depth == 0 or draw.random() < 0.2:
        word = draw.choice(
            ["a", "word", "(", "[", "(2R)-[x]", "-LCB-", "1\\/2", "a\u2009b", "\u65e5"]
        )
        return Tree(draw.choice(["XX", "NN"]), (escaped(word),))
    children = [drawn_tree(draw, depth - 1) for _ in range(draw.randint(1, 4))]
    return Tree("L" * draw.randint(1, 20), tuple(children))


def test_places_are_those_of_the_pictures():
    draw = random.Random(4)
    brackets = [str(drawn_tree(draw, depth)) for depth in range(6) for _ in range(5)]
    assert places_in_node(brackets) == [places_in_python(one) for one in brackets]


def test_control_another_tree_has_other_places():
    assert places_in_node(["(S (XX a) (XX b))"]) != [places_in_python("(S (XX a) (NP (XX b)))")]
