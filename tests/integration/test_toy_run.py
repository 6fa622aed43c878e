"""From text to a served translator with the commands, on the toy corpus."""

import json
import random
import sys

import pytest
from shell import printed

from keras_transformer.evaluation.metrics import METRICS
from keras_transformer.inference.translator import Translator
from pipelines import corpora

RUN = "runs/reverse_words_reversed"
SAVED = "saved_models/reverse_words_reversed"


@pytest.fixture(scope="module")
def sentences():
    draw = random.Random(5)
    return [
        " ".join(draw.choices("abcdefghijklmnopqrst", k=draw.randint(1, 14))) for _ in range(200)
    ]


@pytest.fixture(scope="module")
def batched(live, sentences):
    return live.translate(sentences)


def test_the_toy_task_is_learned(toy):
    history = [
        json.loads(line) for line in (toy.folder / RUN / "history.jsonl").read_text().splitlines()
    ]
    final = json.loads((toy.folder / RUN / "evaluation.json").read_text())
    assert history[0]["val_bleu"] < 20
    assert final["bleu"] > 90
    assert final["bleu_signature"].startswith("nrefs:1|case:mixed")


def test_training_prints_sizes_progress_scores_and_translations(toy):
    printed = toy.trained.stdout.decode()
    for words in ("parameters", "padding", "val_bleu", "BLEU", "translation", "exported to"):
        assert words in printed
    assert toy.trained.stderr == b""


@pytest.mark.parametrize(
    "release", ["--norelease", pytest.param("--export_dir=elsewhere", marks=pytest.mark.slow)]
)
def test_a_finished_run_is_not_trained_again(toy, toy_copy, release):
    before = (toy_copy.folder / RUN / "history.jsonl").read_text()
    again = toy_copy.run(*toy.training, release)
    assert b"nothing is left to train" in again.stdout
    assert (toy_copy.folder / RUN / "history.jsonl").read_text() == before
    assert (toy_copy.folder / "elsewhere").exists() == (release != "--norelease")


@pytest.mark.slow
@pytest.mark.parametrize(("form", "package"), [("onnx", "tf2onnx"), ("litert", "ai_edge_litert")])
def test_its_graphs_translate_without_tensorflow(toy, toy_copy, sentences, batched, form, package):
    pytest.importorskip(package)
    both = toy_copy.run(*toy.training, f"--export_formats=saved_model,{form}")
    graphs = f"{SAVED}_{form}"
    assert f"exported to {toy_copy.folder / graphs / '1'}" in both.stdout.decode()
    assert Translator.load(toy_copy.folder / graphs).translate(sentences) == batched
    piped = toy_copy("translate", f"--model={graphs}", stdin=sentences[0].encode() + b"\n")
    assert piped.stdout.decode() == f"{batched[0]}\n"
    assert piped.stderr == b""


def test_a_sentence_alone_and_in_a_batch_is_translated_the_same(live, sentences, batched):
    alone = [live.translate([sentence])[0] for sentence in sentences[:80]]
    assert alone == batched[:80]
    assert len(set(batched)) > 160


def test_the_saved_model_translates_like_the_live_model(toy, sentences, batched):
    assert Translator.load(toy.folder / SAVED).translate(sentences) == batched


@pytest.mark.slow
def test_the_saved_model_needs_only_tensorflow_and_tensorflow_text(toy, sentences, batched):
    program = (
        "import sys, json, tensorflow as tf, tensorflow_text\n"
        f"model = tf.saved_model.load({str(toy.folder / SAVED / '1')!r})\n"
        "serve = model.signatures['serving_default']\n"
        "text = json.load(sys.stdin)\n"
        "out = [s.decode() for i in range(0, len(text), 50) for s in "
        "serve(text=tf.constant(text[i:i+50]))['translation'].numpy()]\n"
        "assert not {'keras_transformer', 'pipelines'} & set(sys.modules)\n"
        "json.dump(out, sys.stdout)\n"
    )
    options = {"input": json.dumps(sentences), "cwd": toy.folder}
    assert json.loads(printed(sys.executable, "-c", program, **options)) == batched


def test_each_line_of_input_gives_a_line_of_output(toy):
    piped = toy.run("translate", f"--model={RUN}", stdin=b"a b c\n\n  \nd e f g\r\n")
    lines = piped.stdout.decode().split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[2] == lines[4] == ""
    assert lines[0]
    assert lines[3]


def test_files_are_read_and_written(toy_copy):
    (toy_copy.folder / "in.txt").write_text("a b c d\ne f g", encoding="utf-8")
    result = toy_copy.run("translate", f"--model={SAVED}", "--input=in.txt", "--output=out.txt")
    assert len((toy_copy.folder / "out.txt").read_text(encoding="utf-8").splitlines()) == 2
    assert result.stdout == result.stderr == b""


def test_evaluate_prints_the_scores_of_the_training_as_json(toy):
    result = toy.run("evaluate", f"--model={SAVED}", "--json", "--confidence")
    trained = json.loads((toy.folder / RUN / "evaluation.json").read_text())
    report = json.loads(result.stdout)
    assert report.keys() == {"sentences", "scores"}
    assert report["sentences"] == trained["sentences"]
    assert report["scores"].keys() == METRICS.keys() - {"bleu_language"}
    for name in ("bleu", "chrf"):
        assert report["scores"][name]["score"] == trained[name]
        assert report["scores"][name]["interval"] > 0


def test_evaluate_compares_with_another_system_on_two_files(toy_copy):
    test = corpora.load("reverse", source_language="words", target_language="reversed", seed=3).test
    references = [f"{line} ." for line in test.targets[:20]]
    worse = [line.replace("a", "b") for line in references]
    for name, lines in {"s.txt": test.sources, "r.txt": references, "w.txt": worse}.items():
        (toy_copy.folder / name).write_text("".join(f"{line}\n" for line in lines[:20]))
    result = toy_copy(
        "evaluate",
        f"--model={SAVED}",
        "--source_file=s.txt",
        "--reference_file=r.txt",
        "--baseline_file=w.txt",
        "--metrics=bleu,ter",
        "--beam_size=1",
    )
    printed = result.stdout.decode().splitlines()
    assert printed[0] == "20 sentences"
    expected = ["metric", "BLEU 13a", "TER, lower is better"]
    assert [line.split("  ")[0] for line in printed[1:4]] == expected
    assert printed[5] == "baseline: w.txt; paired test: bootstrap"
    assert printed[6].split() == ["metric", "baseline", "score", "difference", "p", "signature"]
    assert len(printed) == 9
    warning = b"warning: 100% of the references look tokenized"
    assert result.stderr.startswith(warning)
    assert result.stderr.count(b"\n") == 1
