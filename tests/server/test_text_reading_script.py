"""The page's panels for models that read texts, run by node with a browser of a few lines."""

import json
import random
import shutil

import numpy as np
import pytest
import shell
from written import escaped

from keras_transformer.visualization import tree_drawings
from pipelines.trees import Tree, parse

pytest.importorskip("fastapi")
if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)

from keras_transformer.server import app

# Stands for a browser. The page's own scripts run unchanged behind it.
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
    return respond({ model_spec: { version: "1" }, metadata });
  }
  lastBody = JSON.parse(body);
  return respond(answers[lastBody.signature_name]);
}
const respond = (answer) => ({ ok: true, text: async () => JSON.stringify(answer) });
const words = (element) => typeof element === "string" ? element :
  element.textContent || element.children.map(words).filter((text) => text).join(" ");
"""


def printed(program, text):
    """The values that node prints for standard input, each a line of JSON."""
    lines = shell.printed(shutil.which("node"), "-e", program, input=text, timeout=60)
    return [json.loads(line) for line in lines.splitlines()]


def script(name):
    return (app.PAGE / f"{name}.js").read_text(encoding="utf-8")


def run(program, kind="filled", **answers):
    """The value that a program prints behind the page's scripts. The model's `serving_default` has
    the output `kind`; `answers` are rows by signature.
    """
    responses = {name: {"predictions": rows} for name, rows in answers.items()}
    browser = BROWSER.replace("OUTPUTS", json.dumps(kind))
    browser = browser.replace("ANSWERS", json.dumps(responses))
    program = f"(async () => {{ {program} }})();"
    [value] = printed("\n".join([browser, *map(script, app.SCRIPTS), program]), "")
    return value


SEND = """
get("text").value = TEXT;
await translate({ preventDefault() {} });
"""


def send(text, shown, kind, **answers):
    """The value of the JavaScript `shown` after a text was typed and sent."""
    program = SEND.replace("TEXT", json.dumps(text))
    return run(f"{program} console.log(JSON.stringify({shown}));", kind, **answers)


def test_guesses_are_shown_for_each_mask_with_their_shares():
    row = {
        "filled": "a dog and a cat",
        "pieces": [["dog", "cow"], ["cat", "dog"]],
        "probabilities": [[0.75, 0.125], [0.5, 0.25]],
    }
    shown = """[get("best").textContent, get("readings").children.map(words),
      get("search").hidden, get("answer").hidden, get("error").textContent,
      get("curl").textContent]"""
    page = send("a <mask> and a <mask>", shown, "filled", fill_mask=[row], embed=[])
    assert page == [
        "a dog and a cat",
        ["dog 75.0 % cow 12.5 %", "cat 50.0 % dog 25.0 %"],
        False,
        False,
        "",
        'curl -d \'{"signature_name":"fill_mask","instances":[{"text":"a <mask> and a <mask>"}]}\' '
        "'http://here/v1/models/m:predict'",
    ]


def test_a_text_without_the_mask_of_the_model_is_refused():
    shown = '[get("error").textContent, get("answer").hidden]'
    error = "Write <mask> or [MASK] in place of a word to guess."
    assert send("a dog", shown, "filled") == [error, True]
    # A model gives an empty row for a text in which it finds no mask.
    row = {"filled": "a [MASK]", "pieces": [["", ""]], "probabilities": [[0, 0]]}
    error = "The model finds no mask of its own in the text. Its mask is <mask> or [MASK]: try the"
    assert send("a [MASK]", shown, "filled", fill_mask=[row]) == [f"{error} other.", True]


def test_labels_are_shown_likeliest_first_and_a_vector_by_its_first_numbers():
    row = {"label": "b", "labels": ["a", "b", "c"], "probabilities": [0.25, 0.625, 0.125]}
    shown = '[get("best").textContent, get("error").textContent, {}]'
    readings = 'words(get("readings").children[0])'
    page = send("text", shown.format(readings), "label", classify=[row])
    assert page == ["b", "", "b 62.5 % a 25.0 % c 12.5 %"]
    page = send("text", shown.format(0), "vector", embed=[[0.5, 0.25, -0.5, 0.125, 0.1]])
    assert page == ["5 numbers: 0.500, 0.250, -0.500, 0.125 ...", "", 0]


def test_spans_are_shown_in_their_text():
    row = {
        "words": ["turn", "the", "living", "room", "lamp", "", ""],
        "tags": ["O", "O", "B-area", "I-area", "B-name", "", ""],
        "probabilities": [0.5, 0.5, 0.5, 0.25, 0.75, 0, 0],
    }
    shown = """[get("best").textContent, ...get("readings").children.map(words),
      get("error").textContent]"""
    assert send("text", shown, "tags", tag=[row]) == [
        "area: living room; name: lamp",
        "turn the   living room area   lamp name",
        "turn O 50.0 % the O 50.0 % living B-area 50.0 % room I-area 25.0 % lamp B-name 75.0 %",
        "",
    ]
    # Another program's model may give names without B and I.
    plain = {**row, "tags": [tag[2:] or tag for tag in row["tags"]]}
    assert send("text", shown, "tags", tag=[plain])[0] == "area: living room; name: lamp"
    nothing = {**row, "tags": ["O"] * 5 + ["", ""]}
    assert send("text", 'get("best").textContent', "tags", tag=[nothing]) == "No span is found."


def test_sentences_are_searched_the_nearest_first():
    vectors = [[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]]
    program = """
    translated = "ab";
    get("sentences").value = "far\\n\\n  middle \\nnear\\n";
    await searchSentences();
    const first = [lastBody.instances, get("found").children.map(words)];
    // Another text has other neighbours, also if it is read before the answer comes.
    await showVector("b");
    const afterReading = get("found").children.length;
    const searching = searchSentences();
    translated = "b";
    await searching;
    console.log(JSON.stringify([...first, afterReading, get("found").children.length]));"""
    neighbours = ["near 0.800", "middle 0.600", "far 0.000"]
    expected = [["ab", "far", "middle", "near"], neighbours, 0, 0]
    assert run(program, embed=vectors) == expected
    empty = 'await searchSentences(); console.log(JSON.stringify(get("error").textContent));'
    assert run(empty) == "Write sentences to search in, one a line."


# The page's script gives a tree's words and labels the places that Python gives them.

GAP = 1.5
PROGRAM = """
const size = (text) => text.length;
for (const line of require("fs").readFileSync(0, "utf-8").split("\\n").filter((line) => line)) {
  const all = places(readTree(line), size, 1.5).places;
  console.log(JSON.stringify(all.map((place) =>
    [place.text, place.isWord, place.x, place.level, all.indexOf(place.parent)])));
}
"""


def places_in_python(brackets):
    places = tree_drawings.places(parse(brackets), len, GAP)
    numbers = {id(node): number for number, node in enumerate(places)} | {id(None): -1}
    return [
        [node.text, node.is_word, pytest.approx(node.middle), node.level, numbers[id(node.parent)]]
        for node in places
    ]


def drawn_tree(draw, depth):
    if depth == 0 or draw.random() < 0.2:
        words = ["a", "word", "(", "[", "(2R)-[x]", "-LCB-", "1\\/2", "a\u2009b", "\u65e5"]
        word = draw.choice(words)
        return Tree(draw.choice(["XX", "NN"]), (escaped(word),))
    children = [drawn_tree(draw, depth - 1) for _ in range(draw.randint(1, 4))]
    return Tree("L" * draw.randint(1, 20), tuple(children))


def test_a_tree_has_the_same_places_in_the_page_as_in_python():
    draw = random.Random(4)
    brackets = [str(drawn_tree(draw, depth)) for depth in range(6) for _ in range(5)]
    in_node = printed(script("tree") + PROGRAM, "\n".join(brackets))
    assert in_node == list(map(places_in_python, brackets))


# The arithmetic of the page's panel for pictures, run by node, against NumPy.

PANEL = """
const answer = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify([
  opacities(answer.heads, 4, 6),
  ranked(answer.prediction, 2),
  fitted(40, 20, { width: 8, height: 8 }),
  fitted(3, 6, { width: 8, height: 8 })]));
"""


def test_opacities_ranks_and_sizes_of_pictures_are_those_of_numpy():
    heads = np.random.default_rng(7).uniform(size=(3, 2, 3))
    prediction = {"classes": ["a", "b", "c"], "probabilities": [0.2, 0.1, 0.7]}
    page = "const get = () => ({ addEventListener() {} });\n"
    answer = json.dumps({"heads": heads.tolist(), "prediction": prediction})
    [[opacities, ranked, wide, high]] = printed(page + script("pictures") + PANEL, answer)
    mean = heads.mean(axis=0)
    np.testing.assert_allclose(opacities, np.kron(mean / mean.max(), np.ones((2, 2))), rtol=1e-12)
    assert ranked == [["c", 0.7], ["a", 0.2]]
    assert wide == [0, 2, 8, 4]
    assert high == [2, 0, 4, 8]


def test_only_the_picture_that_was_dropped_last_is_shown():
    program = """
    pngOf = async (file) => file;
    showClasses = ({ number }) => { get("class").textContent += number; };
    showLooks = () => {};
    predict = async (signature, { png }) => {
      const { number, seconds } = png.b64;
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
      if (number === 2) throw new Error("broken");
      return { number };
    };
    const files = [[1, 0.02], [2, 0.03], [3, 0]].map(([number, seconds]) => ({ number, seconds }));
    await Promise.all(files.map(classify));
    const shown = [get("class").textContent, get("error").textContent, get("looked").hidden];
    console.log(JSON.stringify(shown));"""
    assert run(program) == ["3", "", False]


def test_an_error_of_a_proxy_is_shown_in_words():
    program = """
    const shown = [];
    const pages = [[502, "<html>Bad Gateway"], [200, "<html>Log in"], [503, '{"error": "busy"}']];
    for (const [status, body] of pages) {
      const text = async () => body;
      fetch = async () => ({ ok: status === 200, status, text });
      await translate({ preventDefault() {} });
      shown.push(get("error").textContent);
    }
    console.log(JSON.stringify(shown));"""
    words = "The server does not answer: HTTP"
    assert run(program) == [f"{words} 502.", f"{words} 200.", "busy"]


def test_only_an_error_about_the_latest_next_pieces_is_shown_until_others_come():
    program = """
    get("next").hidden = false;
    let fails = true;
    predict = async () => {
      if (!fails) return { pieces: [], probabilities: [], model_probabilities: [] };
      await new Promise((resolve) => setTimeout(resolve, 20));
      throw new Error("busy");
    };
    const shown = [];
    for (const doesFail of [true, false]) {
      const before = refreshNextPieces();
      fails = doesFail;
      await Promise.all([before, refreshNextPieces()]);
      shown.push(get("error").textContent);
    }
    await refreshNextPieces();
    console.log(JSON.stringify([...shown, get("error").textContent]));"""
    assert run(program) == ["busy", "", ""]
