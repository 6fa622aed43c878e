"""The command that parses: each format, raw text, a stream, and wrong options."""

import pathlib
from xml.etree import ElementTree

import pytest
from integration.conftest import answers_one_by_one
from shell import Shell
from written import escaped

from keras_transformer.inference.translator import Translator
from pipelines.trees import parse

pytestmark = pytest.mark.slow
TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
RUN = "runs/parsing_en"
SAVED = "saved_models/parsing_en"
TRAIN = (
    *("train", "--flagfile=parsing_small.flags", f"--data_dir={TREEBANK}", "--max_steps=3"),
    *("--vocabulary_size=400", "--num_layers=1", "--d_model=16", "--d_ff=32", "--num_heads=2"),
    *("--max_length=+20", "--beam_size=4", "--length_penalty=0.6"),
)
SENTENCES = ["The cat sings .", "", "Birds ( small ones ) fly", "Go"]
RAW = ["The cat can't sing.", "", "Birds (small ones) fly", "Go"]


@pytest.fixture(scope="module")
def shell(tmp_path_factory, warm):
    """A `Shell` in the folder of a parser that has learned next to nothing."""
    shell = Shell(tmp_path_factory.mktemp("parser"), warm)
    shell.run(*TRAIN)
    (shell.folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    return shell


@pytest.fixture(scope="module")
def written(shell):
    """The completed processes of commands, by a name for each."""
    lines = ["parse", f"--model={RUN}", "--input=sentences.txt"]
    commands = {
        "brackets": lines,
        "greedy": [*lines, "--beam_size=1", "--constrained"],
        "saved": ["parse", f"--model={SAVED}", "--input=sentences.txt", "--output=saved.trees"],
        "drawn": [*lines, "--tree_format=drawn"],
        "picture": [*lines, "--tree_format=picture", "--output=a.svg", "--theme=dark"],
        "several": [*lines, "--num_hypotheses=2", "--beam_size=2"],
        "streamed picture": ["parse", f"--model={RUN}", "--stream", "--tree_format=picture"],
        "no picture": [*lines, "--tree_format=picture"],
    }
    return dict(zip(commands, shell.all(list(commands.values())), strict=True))


def trees_of(answer):
    assert (answer.returncode, answer.stderr) == (0, b""), answer.stderr.decode()
    return answer.stdout.decode().split("\n")[:-1]


def assert_over(trees, sentences):
    assert len(trees) == len(sentences)
    for tree, sentence in zip(trees, sentences, strict=True):
        words = list(map(escaped, sentence.split()))
        assert (parse(tree).words if words else tree) == (words or "")


def test_each_sentence_has_a_tree_of_its_words(shell, written):
    trees = trees_of(written["brackets"])
    assert_over(trees, SENTENCES)
    assert trees == Translator.load(shell.folder / RUN).translate(SENTENCES)
    greedy = trees_of(written["greedy"])
    assert_over(greedy, SENTENCES)
    options = {"beam_size": 1, "constrained": True}
    assert greedy == Translator.load(shell.folder / RUN, **options).translate(SENTENCES)


def test_a_saved_model_parses_with_the_options_of_its_export(shell, written):
    """The flag file sets --constrained."""
    assert trees_of(written["saved"]) == []
    trees = (shell.folder / "saved.trees").read_text().split("\n")[:-1]
    assert_over(trees, SENTENCES)
    options = {"constrained": True, "max_length": "+20", "min_length": 1}
    assert trees == Translator.load(shell.folder / RUN, **options).translate(SENTENCES)
    # A control: without constraints other trees come out.
    free = {**options, "constrained": False}
    assert trees != Translator.load(shell.folder / RUN, **free).translate(SENTENCES)


def test_trees_are_drawn_for_a_terminal(written):
    pytest.importorskip("nltk")
    blocks = "\n".join(trees_of(written["drawn"])).split("\n\n")
    last_lines = [block.strip("\n").split("\n")[-1].split() for block in blocks if block.strip()]
    assert last_lines == [sentence.split() for sentence in SENTENCES if sentence]


def test_trees_are_drawn_as_a_picture(shell, written):
    pytest.importorskip("matplotlib")
    assert trees_of(written["picture"]) == []
    assert ElementTree.parse(shell.folder / "a.svg").getroot().tag.endswith("svg")


def test_raw_text_is_split_into_words(shell):
    pytest.importorskip("nltk")
    text = "".join(f"{line}\n" for line in RAW).encode()
    answer = shell("parse", f"--model={RUN}", "--raw_text", stdin=text)
    words = ["The cat ca n't sing .", "", "Birds ( small ones ) fly", "Go"]
    assert_over(trees_of(answer), words)


def test_a_streamed_sentence_is_answered_before_the_next_is_sent(shell):
    answers = answers_one_by_one(shell, SENTENCES, "parse", f"--model={RUN}", "--stream")
    assert_over([answer.removesuffix("\n") for answer in answers], SENTENCES)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("several", b"--num_hypotheses=2: parse writes one tree for a sentence. Leave it out"),
        ("streamed picture", b"--stream answers lines of standard input on standard output"),
        ("no picture", b"--output must be a file that ends in .png or .svg. Received: --output=-"),
    ],
)
def test_options_that_do_not_suit_it_are_refused_in_one_line(written, name, message):
    answer = written[name]
    assert answer.returncode == 1
    assert answer.stderr.startswith(b"error: " + message)
    assert answer.stderr.count(b"\n") == 1
