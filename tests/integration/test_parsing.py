"""A parser trained by the command on the treebank of the tests: killed, exported, evaluated."""

import json
import pathlib
import random
import re

import pytest
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
