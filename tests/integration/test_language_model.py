"""A language model trained by the command on text of the tests: killed, exported, evaluated."""

import json
import pathlib
import random

import pytest

from keras_transformer.inference.generator import Generator
from pipelines.corpora import Treebank, treebank

pytestmark = pytest.mark.slow
TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
RUN = "runs/lines_en"
SAVED_MODEL = "saved_models/lines_en"
SIZES = [
    *("--num_layers=2", "--vocabulary_size=400", "--d_model=32", "--d_ff=64", "--num_heads=2"),
    *("--batch_tokens=80", "--mixed_precision=float32", "--max_length=+12"),
    *("--average_over=epochs", "--average_checkpoints=1"),
]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """The command that learns the sentences of the treebank as text."""
    folder = tmp_path_factory.mktemp("text")
    for split in ("train", "valid", "test"):
        lines = list(map(treebank.words_of, Treebank(data_dir=str(TREEBANK)).trees(split)))
        (folder / f"{split}.en").write_text("\n".join(lines) + "\n")
    return ["train", "--flagfile=gpt.flags", "--corpus=lines", f"--data_dir={folder}", *SIZES]


@pytest.fixture(scope="module")
def trained(trained_once, train):
    """A `Shell` in the folder of a language model that has learned its text in part."""
    return trained_once("language_model", [*train, "--max_epochs=20"])


def prompts(count):
    draw = random.Random(1)
    lines = list(map(treebank.words_of, Treebank(data_dir=str(TREEBANK)).trees("train")))
    words = [word for line in lines for word in line.split()] + ["日本語", "(", "unknowable"]
    random_lines = [" ".join(draw.choices(words, k=draw.randint(0, 8))) for _ in range(count)]
    return [line[: len(line) // 2].strip() for line in lines] + random_lines


def test_its_perplexity_is_that_of_evaluate(trained):
    evaluation = json.loads((trained.folder / RUN / "evaluation.json").read_text())
    run, saved, refused, tuned = trained.all(
        [
            ("evaluate", f"--model={RUN}", "--json"),
            ("evaluate", f"--model={SAVED_MODEL}"),
            ("evaluate", f"--model={RUN}", "--confidence"),
            ("tune", f"--model={RUN}"),
        ]
    )
    assert run.returncode == 0, run.stderr.decode()
    scores = json.loads(run.stdout)
    assert scores["perplexity"] == pytest.approx(evaluation["perplexity"], abs=2e-3)
    assert 5 < scores["perplexity"] < 400
    assert f"perplexity {evaluation['perplexity']} a piece" in saved.stdout.decode()
    assert refused.stderr.startswith(b"error: --confidence is for answers that have a reference")
    assert tuned.stderr.startswith(b"error: tune scores translators and parsers. Received: runs/")


def test_the_saved_model_generates_the_text_of_the_live_model(trained):
    """With 200 prompts and the options of the export."""
    lines = prompts(200)[:200]
    live = Generator.load(trained.folder / RUN, max_length="+12")
    served = Generator.load(trained.folder / SAVED_MODEL)
    assert served.generate(lines) == live.generate(lines)
    assert len(set(live.generate(lines))) > 150


def test_after_a_kill_it_resumes_bit_for_bit(trained_once, train, kill_and_resume):
    command = [*train, "--max_epochs=4", "--keep_checkpoints=9", "--norelease"]
    kill_and_resume(command, trained_once("short_language_model", command), RUN)
