"""The panels of the page for models that read texts, run by node with a page of our own making."""

import json
import random
import shutil

import numpy as np
import pytest
import shell

from keras_transformer.visualization import tree_drawings
from pipelines.trees import Tree, escaped, parse

pytest.importorskip("fastapi")
if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)

from keras_transformer.server import app

# What a browser has. The page's scripts run whole behind it: no function of theirs is made here.
BROWSER = """
const nodes = {}, location = { href: "http://here/" };
const node = (name) => ({ name, children: [], style: {}, value: "", textContent: "", hidden: true,
  append(...children) { this.children.push(...children); },
  replaceChildren(...children) { this.children = children; }, addEventListener() {} });
const document = { getElementById: (id) => nodes[id] ??= node(id), createElement: node };
document.getElementById("model").textContent = "m";
const outputs = OUTPUTS, answers = ANSWERS;
let lastBody = null;
async function fetch(path, { body } = {}) {
  if (path.endsWith("/metadata")) {
    const serving_default = { outputs: { [outputs]: {} } };
    const definitions = { ...answers, serving_default };
    const metadata = { signature_def: { signature_def: definitions } };
    return said({ model_spec: { version: "1" }, metadata });
  }
  lastBody = JSON.parse(body);
  return said(answers[lastBody.signature_name]);
}
const said = (answer) => ({ ok: true, text: async () => JSON.stringify(answer) });
const words = (one) => typeof one === "string" ? one :
  one.textContent || one.children.map(words).filter((text) => text).join(" ");
"""


def printed(program, data):
    """What node prints of standard input, a value of JSON a line."""
    lines = shell.printed(shutil.which("node"), "-e", program, input=data, timeout=60)
    return [json.loads(line) for line in lines.splitlines()]


def script(name):
    return (app.PAGE / f"{name}.js").read_text(encoding="utf-8")


def run(program, kind="filled", **answers):
    """What a program prints behind the page's scripts, of a model whose `serving_default` gives
    `kind`. Answers are by signature.
    """
    given = {name: {"predictions": found} for name, found in answers.items()}
    browser = BROWSER.replace("OUTPUTS", json.dumps(kind)).replace("ANSWERS", json.dumps(given))
    program = f"(async () => {{ {program} }})();"
    [found] = printed("\n".join([browser, *map(script, app.SCRIPTS), program]), "")
    return found


# The text is typed and sent, and the answer looked at.
SENT = """
get("text").value = TEXT;
await translate({ preventDefault() {} });
"""


def sent(text, shown, kind, **answers):
    """What is shown when a text was sent."""
    program = SENT.replace("TEXT", json.dumps(text))
    return run(f"{program} console.log(JSON.stringify({shown}));", kind, **answers)


def test_guesses_are_shown_for_each_mask_with_their_shares():
    given = {
        "filled": "a dog and a cat",
        "pieces": [["dog", "cow"], ["cat", "dog"]],
        "probabilities": [[0.75, 0.125], [0.5, 0.25]],
    }
    shown = """[get("best").textContent, get("readings").children.map(words),
      get("search").hidden, get("answer").hidden, get("error").textContent,
      get("curl").textContent]"""
    found = sent("a <mask> and a <mask>", shown, "filled", fill_mask=[given], embed=[])
    assert found == [
        "a dog and a cat",
        ["dog 75.0 % cow 12.5 %", "cat 50.0 % dog 25.0 %"],
        False,
        False,
        "",
        'curl -d \'{"signature_name":"fill_mask","instances":[{"text":"a <mask> and a <mask>"}]}\' '
        "http://here/v1/models/m:predict",
    ]


def test_a_text_without_the_mask_of_the_model_is_refused():
    shown = '[get("error").textContent, get("answer").hidden]'
    told = "Write <mask> or [MASK] in place of a word to guess."
    assert sent("a dog", shown, "filled") == [told, True]
    # A model gives a row of nothing for a text in which it finds no mask.
    given = {"filled": "a [MASK]", "pieces": [["", ""]], "probabilities": [[0, 0]]}
    told = "The model finds no mask of its own in the text. Its mask is <mask> or [MASK]: try the"
    assert sent("a [MASK]", shown, "filled", fill_mask=[given]) == [f"{told} other.", True]


def test_labels_are_shown_likeliest_first_and_a_vector_by_its_first_numbers():
    given = {"label": "b", "labels": ["a", "b", "c"], "probabilities": [0.25, 0.625, 0.125]}
    shown = '[get("best").textContent, get("error").textContent, {}]'
    readings = 'words(get("readings").children[0])'
    found = sent("text", shown.format(readings), "label", classify=[given])
    assert found == ["b", "", "b 62.5 % a 25.0 % c 12.5 %"]
    found = sent("text", shown.format(0), "vector", embed=[[0.5, 0.25, -0.5, 0.125, 0.1]])
    assert found == ["5 numbers: 0.500, 0.250, -0.500, 0.125 ...", "", 0]


def test_spans_are_shown_in_their_text():
    given = {
        "words": ["turn", "the", "living", "room", "lamp", "", ""],
        "tags": ["O", "O", "B-area", "I-area", "B-name", "", ""],
        "probabilities": [0.5, 0.5, 0.5, 0.25, 0.75, 0, 0],
    }
    shown = """[get("best").textContent, ...get("readings").children.map(words),
      get("error").textContent]"""
    assert sent("text", shown, "tags", tag=[given]) == [
        "area: living room; name: lamp",
        "turn the   living room area   lamp name",
        "turn O 50.0 % the O 50.0 % living B-area 50.0 % room I-area 25.0 % lamp B-name 75.0 %",
        "",
    ]
    # Of another program's model, which says no more than names.
    plain = {**given, "tags": [tag[2:] or tag for tag in given["tags"]]}
    assert sent("text", shown, "tags", tag=[plain])[0] == "area: living room; name: lamp"
    nothing = {**given, "tags": ["O"] * 5 + ["", ""]}
    assert sent("text", 'get("best").textContent', "tags", tag=[nothing]) == "No span is found."


def test_sentences_are_searched_the_nearest_first():
    vectors = [[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]]
    program = """
    translated = "ab";
    get("sentences").value = "far\\n\\n  middle \\nnear\\n";
    await searchSentences();
    console.log(JSON.stringify([lastBody.instances, get("found").children.map(words)]));"""
    expected = [["ab", "far", "middle", "near"], ["near 0.800", "middle 0.600", "far 0.000"]]
    assert run(program, embed=vectors) == expected
    empty = 'await searchSentences(); console.log(JSON.stringify(get("error").textContent));'
    assert run(empty) == "Write sentences to search in, one a line."


# The page's own arithmetic, run by node: a tree has the places that Python gives it.

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
    return printed(script("tree") + PROGRAM, "\n".join(brackets))


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


# The arithmetic of the page's panel for pictures, run by node, against NumPy.

PANEL = """
const given = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify([
  opacities(given.heads, 4, 6),
  ranked(given.found, 2),
  fitted(40, 20, { width: 8, height: 8 }),
  fitted(3, 6, { width: 8, height: 8 })]));
"""


def test_opacities_ranks_and_places():
    heads = np.random.default_rng(7).uniform(size=(3, 2, 3))
    found = {"classes": ["a", "b", "c"], "probabilities": [0.2, 0.1, 0.7]}
    page = "const get = () => ({ addEventListener() {} });\n"
    given = json.dumps({"heads": heads.tolist(), "found": found})
    [[opacities, ranked, wide, high]] = printed(page + script("pictures") + PANEL, given)
    mean = heads.mean(axis=0)
    np.testing.assert_allclose(opacities, np.kron(mean / mean.max(), np.ones((2, 2))), rtol=1e-12)
    assert ranked == [["c", 0.7], ["a", 0.2]]
    assert wide == [0, 2, 8, 4]
    assert high == [2, 0, 4, 8]
