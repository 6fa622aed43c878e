"""The panels of the page for models that read texts, run by node with a page of our own making."""

import json
import pathlib
import shutil
import subprocess

import pytest

pytest.importorskip("fastapi")
if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)

from keras_transformer.server import app

PAGE = """
const nodes = {};
const get = (id) => nodes[id] ??= { replaceChildren(...children) { this.children = children; },
  addEventListener() {}, value: "", textContent: "", hidden: true };
const element = (name, properties = {}, ...children) =>
  ({ name, ...properties, children, style: {} });
const words = (node) => typeof node === "string" ? node :
  node.textContent ?? (node.children || []).map(words).filter((one) => one).join(" ");
const shown = (piece) => piece, showCurl = () => {}, base = "m";
const request = (signature_name, instance) => ({ signature_name, instances: [instance] });
const signatures = new Set(["fill_mask", "embed"]);
let translated = "ab", asked = null;
const answers = ANSWERS;
const predict = async (signature) => answers[signature];
const ask = async (path, body) => { asked = body; return answers.ask; };
"""


def run(program, **answers):
    """What a program prints behind the page and its script."""
    page = PAGE.replace("ANSWERS", json.dumps(answers))
    script = (pathlib.Path(app.PAGE) / "text_reading.js").read_text(encoding="utf-8")
    done = subprocess.run(
        [shutil.which("node"), "-e", f"{page}{script}(async () => {{ {program} }})();"],
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_guesses_are_shown_for_each_mask_with_their_shares():
    given = {
        "filled": "a dog and a cat",
        "pieces": [["dog", "cow"], ["cat", "dog"]],
        "probabilities": [[0.75, 0.125], [0.5, 0.25]],
    }
    program = """
    await showGuesses("a <mask> and a <mask>");
    console.log(JSON.stringify([get("best").textContent, get("readings").children.map(words),
      get("search").hidden, get("answer").hidden]));"""
    assert run(program, fill_mask=given) == [
        "a dog and a cat",
        ["dog 75.0 % cow 12.5 %", "cat 50.0 % dog 25.0 %"],
        False,
        False,
    ]


def test_a_text_without_a_mask_is_refused():
    program = """
    const told = (error) => console.log(JSON.stringify(error.message));
    await showGuesses("a dog").catch(told);"""
    assert run(program) == "Write <mask> or [MASK] in place of a word to guess."


def test_labels_are_shown_likeliest_first():
    given = {"label": "b", "labels": ["a", "b", "c"], "probabilities": [0.25, 0.625, 0.125]}
    program = """
    await showLabels("text");
    console.log(JSON.stringify([get("best").textContent, words(get("readings").children[0])]));"""
    assert run(program, classify=given) == ["b", "b 62.5 % a 25.0 % c 12.5 %"]


def test_spans_are_shown_in_their_text():
    given = {
        "words": ["turn", "the", "living", "room", "lamp", "", ""],
        "tags": ["O", "O", "B-area", "I-area", "B-name", "", ""],
        "probabilities": [0.5, 0.5, 0.5, 0.25, 0.75, 0, 0],
    }
    program = """
    await showTags("text");
    const [text, table] = get("readings").children;
    console.log(JSON.stringify([get("best").textContent, words(text), words(table)]));"""
    assert run(program, tag=given) == [
        "area: living room; name: lamp",
        "turn the   living room area   lamp name",
        "turn O 50.0 % the O 50.0 % living B-area 50.0 % room I-area 25.0 % lamp B-name 75.0 %",
    ]
    given["tags"] = ["O", "O", "O", "O", "B-name", "", ""]
    spans = "console.log(JSON.stringify(spansOf(given.words, given.tags)));"
    assert run(f"const given = {json.dumps(given)}; {spans}") == [
        [None, ["turn", "the", "living", "room"]],
        ["name", ["lamp"]],
    ]


def test_sentences_are_searched_the_nearest_first():
    vectors = [[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]]
    program = """
    get("sentences").value = "far\\n\\n  middle \\nnear\\n";
    await searchSentences();
    console.log(JSON.stringify([asked.instances, get("found").children.map(words)]));"""
    assert run(program, ask={"predictions": vectors}) == [
        ["ab", "far", "middle", "near"],
        ["near 0.800", "middle 0.600", "far 0.000"],
    ]
    empty = 'await searchSentences(); console.log(JSON.stringify(get("error").textContent));'
    assert run(empty) == "Write sentences to search in, one a line."
