"""A parser trained by the command on the treebank of the tests: exported and evaluated; and the
command that parses: each format, raw text, a stream, and wrong options.
"""

import json
import pathlib
import random
import re
from xml.etree import ElementTree

import pytest
from integration.conftest import answers_one_by_one
from written import escaped

from keras_transformer.evaluation.parser_score import measure
from keras_transformer.inference.translator import Translator
from pipelines.corpora import Treebank, treebank
from pipelines.trees import parse

pytestmark = pytest.mark.slow
TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
RUN = "runs/parsing_en"
SAVED_MODEL = "saved_models/parsing_en"
SIZES = ("--vocabulary_size=400", "--num_layers=2", "--d_model=64", "--d_ff=128", "--dropout=0.1")
TRAIN = [
    *("train", "--flagfile=parsing_small.flags", f"--data_dir={TREEBANK}", *SIZES),
    *("--batch_tokens=80", "--warmup_steps=100", "--beam_size=2", "--length_penalty=0.6"),
    "--mixed_precision=float32",
    *("--learning_rate_scale=0.5", "--label_smoothing=0", "--noconstrained"),
    *("--average_over=epochs", "--average_checkpoints=1", "--validation_sentences=8"),
]
SHORT = [*TRAIN, "--max_epochs=4", "--keep_checkpoints=9", "--norelease"]


@pytest.fixture(scope="module")
def trained(trained_once):
    """A `Shell` in the folder of a parser that has learned its treebank in part."""
    command = [*TRAIN, "--max_epochs=60", "--keep_best=f1"]
    return trained_once("trained_parser", command)


def sentences(count):
    """The sentences of the treebank, and random ones that have unknown words too."""
    draw = random.Random(1)
    trees = Treebank(data_dir=str(TREEBANK)).trees("train")
    words = [word for tree in trees for word in tree.words]
    words += ["(", ")", "{", "1/2", "日本語", "unknowable", "XX", "(NP", ")"]
    random_lines = [" ".join(draw.choices(words, k=draw.randint(1, 15))) for _ in range(count)]
    return [*map(treebank.words_of, trees), *random_lines]


def test_it_is_scored_by_the_parseval_table(trained):
    text = trained.trained.stdout.decode()
    evaluation = json.loads((trained.folder / RUN / "evaluation.json").read_text())
    assert (evaluation["beam_size"], evaluation["all"]["sentences"]) == (2, 8)
    assert evaluation["all"]["f1"] > 30
    short = evaluation["short"]["f1"]
    assert re.search(rf"beam 2: F1 {short} of sentences of at most 40 words", text)
    assert "sentences  recall  precision" in text
    history = (trained.folder / RUN / "history.jsonl").read_text().splitlines()
    assert max(json.loads(line)["val_f1"] for line in history) > 40
    card = (trained.folder / SAVED_MODEL / "1" / "README.md").read_text()
    assert f"labelled F1 {short}" in card


def test_evaluate_prints_the_same_for_the_run_and_the_saved_model(trained):
    evaluation = json.loads((trained.folder / RUN / "evaluation.json").read_text())
    run, saved, table, files = trained.all(
        [
            ("evaluate", f"--model={RUN}", "--beam_size=2", "--json"),
            ("evaluate", f"--model={SAVED_MODEL}", "--json"),
            ("evaluate", f"--model={SAVED_MODEL}"),
            ("evaluate", f"--model={SAVED_MODEL}", f"--reference_file={TREEBANK / 'test.trees'}"),
        ]
    )
    for answer in (run, saved):
        assert answer.returncode == 0, answer.stderr.decode()
        assert json.loads(answer.stdout)["scores"]["all"] == evaluation["all"]
    assert files.stdout == table.stdout
    assert table.stdout.decode().splitlines()[-1].split()[3] == f"{evaluation['all']['f1']:.2f}"


def test_a_search_is_chosen_by_f1(trained):
    cells = [(beam, alpha) for beam in (1, 2) for alpha in (0.0, 3.0)]
    of_cells = [
        ("evaluate", f"--model={RUN}", "--split=valid", "--json", *search)
        for search in ([f"--beam_size={b}", f"--length_penalty={alpha}"] for b, alpha in cells)
    ]
    tried = ("--beam_sizes=1,2", "--length_penalties=0,3")
    tuned, *answers = trained.all([("tune", f"--model={RUN}", *tried), *of_cells])
    assert tuned.returncode == 0, tuned.stderr.decode()
    expected = [json.loads(answer.stdout)["scores"]["all"]["f1"] for answer in answers]
    printed = tuned.stdout.decode()
    assert printed.startswith("labelled F1 of sentences of any length\n  of the first ")
    rows = re.findall(r"^ +[12]  .*$", printed, flags=re.MULTILINE)
    scores = [float(cell.rstrip("*")) for row in rows for cell in row.split()[1:]]
    assert scores == expected
    assert f"--beam_size={cells[expected.index(max(expected))][0]}\n" in printed


def test_visualize_shows_the_f1_that_is_lost_without_a_head(trained, tmp_path):
    pytest.importorskip("matplotlib")
    options = ("--picture=heads", "--measured_sentences=2", "--ablate", "--max_length=20")
    picture = f"--output={tmp_path}/heads.svg"
    process = trained.run("visualize", f"--model={RUN}", *options, picture)
    header, *rows = process.stdout.decode().splitlines()
    assert header.endswith("  F1 lost")
    assert all(-100 <= float(row.split()[-1]) <= 100 for row in rows)
    assert len(rows) == len({tuple(row.split()[:2]) for row in rows}) > 0


def test_the_saved_model_parses_like_the_live_parser(trained):
    """200 sentences by beam search, with n-best lists and scores."""
    lines = sentences(200)[:200]
    live = Translator.load(trained.folder / RUN, beam_size=2)
    served = Translator.load(trained.folder / SAVED_MODEL)
    trees = live.translate(lines)
    assert served.translate(lines) == trees
    for line, tree in zip(lines, trees, strict=True):
        assert parse(tree).words == list(map(escaped, line.split()))
    wide = Translator.load(trained.folder / SAVED_MODEL, beam_size=3, num_hypotheses=3)
    for line, hypotheses in zip(lines[:5], wide.translate_in_detail(lines[:5]), strict=True):
        assert len(hypotheses) == 3
        for hypothesis in hypotheses:
            assert parse(hypothesis.text).words == list(map(escaped, line.split()))
    rows = zip(live.score(lines, trees), served.score(lines, trees), strict=True)
    assert all(ours == pytest.approx(theirs, rel=1e-4) for ours, theirs in rows)


def test_it_has_learned_trees(trained):
    """Far more brackets are right than with flat trees."""
    gold = Treebank(data_dir=str(TREEBANK)).trees("train")
    sentences = list(map(treebank.words_of, gold))
    trees = Translator.load(trained.folder / SAVED_MODEL).translate(sentences)
    flat = [f"(S {' '.join(f'(XX {word})' for word in tree.words)})" for tree in gold]
    learned, baseline = (measure(parsed, gold)["all"] for parsed in (trees, flat))
    assert learned["f1"] > 40 > 30 > baseline["f1"]
    assert learned["complete"] > baseline["complete"]


def test_after_a_kill_it_resumes_bit_for_bit(trained_once, kill_and_resume):
    kill_and_resume(SHORT, trained_once("short_parser", SHORT), RUN)


# The command that parses.
SENTENCES = ["The cat sings .", "", "Birds ( small ones ) fly", "Go"]
RAW = ["The cat can't sing.", "", "Birds (small ones) fly", "Go"]


@pytest.fixture(scope="module")
def shell(trained, tmp_path_factory):
    """A `Shell` in a copy of the folder."""
    shell = trained.copy(tmp_path_factory.mktemp("parser"))
    (shell.folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    return shell


@pytest.fixture(scope="module")
def written(shell):
    """The completed processes of commands, by a name for each."""
    lines = ["parse", f"--model={RUN}", "--input=sentences.txt"]
    commands = {
        "brackets": lines,
        "greedy": [*lines, "--beam_size=1", "--constrained"],
        "saved": ["parse", f"--model={SAVED_MODEL}", *lines[2:], "--output=saved.trees"],
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
    assert trees_of(written["saved"]) == []
    assert trees == (shell.folder / "saved.trees").read_text().split("\n")[:-1]
    greedy = trees_of(written["greedy"])
    assert_over(greedy, SENTENCES)
    options = {"beam_size": 1, "constrained": True}
    assert greedy == Translator.load(shell.folder / RUN, **options).translate(SENTENCES)


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
