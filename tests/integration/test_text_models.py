"""Language models and encoder-only models trained by the command on text of the tests: killed,
fine-tuned, exported, evaluated.
"""

import json
import pathlib
import random

import numpy as np
import pytest

from keras_transformer.inference.generator import Generator
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.labelling.task import Classification, Tagging
from keras_transformer.tasks.masking.task import Masking
from pipelines.corpora import Treebank, treebank

pytestmark = pytest.mark.slow
TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
SIZES = [
    *("--num_layers=2", "--vocabulary_size=400", "--d_model=32", "--d_ff=64", "--num_heads=2"),
    *("--batch_tokens=80", "--mixed_precision=float32"),
    *("--average_over=epochs", "--average_checkpoints=1"),
]
ENCODER = [*SIZES, "--warmup_steps=20"]
VALUES = {"precision": "float32"}


def sentences(split):
    return list(map(treebank.words_of, Treebank(data_dir=str(TREEBANK)).trees(split)))


def tag_of(word):
    """A tag that depends on the word alone, so that a small net can learn it."""
    return "B-the" if word.lower() == "the" else "O"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A folder of sentences, with a label (long or short) and tags for each."""
    folder = tmp_path_factory.mktemp("text")
    for split in ("train", "valid", "test"):
        lines = sentences(split)
        middle = sorted(map(len, sentences("train")))[len(sentences("train")) // 2]
        labels = ["long" if len(line) > middle else "short" for line in lines]
        (folder / f"{split}.en").write_text("\n".join(lines) + "\n")
        (folder / f"{split}.length").write_text("\n".join(labels) + "\n")
        rows = [" ".join(map(tag_of, line.split())) for line in lines]
        (folder / f"{split}.tags").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def masking(text):
    """The command that trains a masked language model on the sentences."""
    return ["train", "--flagfile=bert.flags", "--corpus=lines", f"--data_dir={text}", *ENCODER]


@pytest.fixture(scope="module")
def guesser(trained_once, masking):
    """A `Shell` in the folder of a masked language model that has learned its text in part."""
    return trained_once("guesser", [*masking, "--max_epochs=12", "--model_dir=runs/guesser"])


@pytest.fixture(scope="module")
def classifying(guesser, text):
    """The command that trains a classifier from the weights of `guesser`."""
    return [
        *("train", "--flagfile=bert_intents.flags", "--corpus=text_files", f"--data_dir={text}"),
        *("--target_language=length", *ENCODER, "--keep_best=accuracy"),
        "--learning_rate_scale=0.1",
        f"--init_from={guesser.folder / 'runs' / 'guesser'}",
    ]


@pytest.fixture(scope="module")
def classifier(trained_once, classifying):
    return trained_once("labeller", [*classifying, "--max_epochs=15", "--model_dir=runs/labeller"])


@pytest.fixture(scope="module")
def tagger(trained_once, classifying):
    # bert_intents.flags sets --pooling, which taggers do not take.
    command = [flag.replace("bert_intents", "bert_slots") for flag in classifying]
    command = [*command, "--target_language=tags", *ENCODER, "--learning_rate_scale=0.3"]
    return trained_once("tagger", [*command, "--max_epochs=15", "--model_dir=runs/tagger"])


def test_saved_models_answer_like_the_live_models(guesser, classifier, tagger):
    lines = [*sentences("train"), *sentences("test")]
    lines = [line for _ in range(200) for line in lines][:200]
    hidden = [
        f"{line[: number % 30]} <mask> {line[number % 30 :]}" for number, line in enumerate(lines)
    ]
    live = TextReader.of(Masking.reload(RunFolder(guesser.folder / "runs/guesser"), VALUES))
    served = TextReader.load(guesser.folder / "saved_models" / "guesser")
    assert served.filled(hidden) == live.filled(hidden)
    np.testing.assert_allclose(served.vectors(lines), live.vectors(lines), rtol=1e-4, atol=1e-5)
    folder = RunFolder(classifier.folder / "runs/labeller")
    live = TextReader.of(Classification.reload(folder, VALUES))
    served = TextReader.load(classifier.folder / "saved_models" / "labeller")
    assert served.labels(lines) == live.labels(lines)
    assert set(served.labels(lines)) == {"long", "short"}
    folder = RunFolder(tagger.folder / "runs/tagger")
    live = TextReader.of(Tagging.reload(folder, VALUES))
    tags = TextReader.load(tagger.folder / "saved_models" / "tagger").tags(lines)
    assert tags == live.tags(lines)
    assert {tag for row in tags for tag in row} == {"B-the", "O"}
    message = r"must have a mask, <mask> or .*text 2, 'no mask'\. Write"
    with pytest.raises(ValueError, match=message):
        live.filled(["a <mask>", "no mask"])
    with pytest.raises(ValueError, match=r"has no fill_mask\. Received: a model with attend, cla"):
        served.filled(["a <mask>"])


def test_its_attention_is_drawn(guesser, fresh_shell):
    run = f"--model={guesser.folder / 'runs' / 'guesser'}"
    exported = f"--model={guesser.folder / 'saved_models' / 'guesser'}"
    common = ("visualize", "--line=The old dog barked .", "--output=heads.svg")
    processes = fresh_shell.all(
        [
            (*common, "--picture=attention", run),
            (*common, "--picture=head", exported, "--output=head.svg"),
            (*common, "--picture=attention", run, "--stack=cross"),
        ]
    )
    for process, name in zip(processes, ("heads.svg", "head.svg"), strict=False):
        assert process.returncode == 0, process.stderr.decode()
        assert "barked" in (fresh_shell.folder / name).read_text()
    assert b"error: the model has no attention of the decoder to the source." in processes[2].stderr


def test_evaluate_gives_the_accuracy_of_the_run(guesser, classifier, tagger):
    for shell, name in ((guesser, "guesser"), (classifier, "labeller"), (tagger, "tagger")):
        evaluation = json.loads((shell.folder / "runs" / name / "evaluation.json").read_text())
        answer, refused = shell.all(
            [
                ("evaluate", f"--model=runs/{name}", "--json"),
                ("evaluate", f"--model=runs/{name}", "--confidence"),
            ]
        )
        assert answer.returncode == 0, answer.stderr.decode()
        scores = json.loads(answer.stdout)
        assert scores["accuracy"] == pytest.approx(evaluation["accuracy"], abs=1e-3)
        assert refused.stderr.startswith(b"error: --confidence is for ")


@pytest.mark.parametrize("kind", ["masking", "generating"])
def test_after_a_kill_it_resumes_bit_for_bit(trained_once, kind, kill_and_resume, request):
    training = request.getfixturevalue(kind)
    command = [*training, "--max_epochs=4", "--keep_checkpoints=9", "--norelease"]
    command.append("--model_dir=runs/short")
    kill_and_resume(command, trained_once(f"short_{kind}", command), "runs/short")


@pytest.fixture(scope="module")
def generating(text):
    """The command that trains a language model on the sentences."""
    gpt = ["train", "--flagfile=gpt.flags", "--corpus=lines", f"--data_dir={text}"]
    return [*gpt, *SIZES, "--max_length=+12"]


@pytest.fixture(scope="module")
def generator(trained_once, generating):
    """A `Shell` in the folder of a language model that has learned its text in part."""
    return trained_once("generator", [*generating, "--max_epochs=20", "--model_dir=runs/gpt"])


def prompts(count):
    draw = random.Random(1)
    lines = sentences("train")
    words = [word for line in lines for word in line.split()] + ["日本語", "(", "unknowable"]
    random_lines = [" ".join(draw.choices(words, k=draw.randint(0, 8))) for _ in range(count)]
    return [line[: len(line) // 2].strip() for line in lines] + random_lines


def test_its_perplexity_is_that_of_evaluate(generator):
    evaluation = json.loads((generator.folder / "runs/gpt" / "evaluation.json").read_text())
    run, saved, refused, tuned = generator.all(
        [
            ("evaluate", "--model=runs/gpt", "--json"),
            ("evaluate", "--model=saved_models/gpt"),
            ("evaluate", "--model=runs/gpt", "--confidence"),
            ("tune", "--model=runs/gpt"),
        ]
    )
    assert run.returncode == 0, run.stderr.decode()
    scores = json.loads(run.stdout)
    assert scores["perplexity"] == pytest.approx(evaluation["perplexity"], abs=2e-3)
    assert 5 < scores["perplexity"] < 400
    assert f"perplexity {evaluation['perplexity']} a piece" in saved.stdout.decode()
    assert refused.stderr.startswith(b"error: --confidence is for answers that have a reference")
    assert tuned.stderr.startswith(b"error: tune scores translators and parsers. Received: runs/")


def test_the_saved_model_generates_the_text_of_the_live_model(generator):
    """With 200 prompts and the options of the export."""
    lines = prompts(200)[:200]
    live = Generator.load(generator.folder / "runs/gpt", max_length="+12")
    served = Generator.load(generator.folder / "saved_models/gpt")
    assert served.generate(lines) == live.generate(lines)
    assert len(set(live.generate(lines))) > 150
