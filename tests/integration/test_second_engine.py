"""Other engines with the same weights: CTranslate2, and C++ without Python."""

import json
import os
import pathlib
import random
import shutil
import subprocess

import pytest
import tensorflow as tf
import tensorflow_text
from shell import printed

from keras_transformer.inference.translator import Translator
from pipelines import corpora

# CTranslate2: the same translations.
RUN = "runs/reverse_words_reversed"
CONVERTED = "saved_models/reverse_words_reversed_ctranslate2"


@pytest.fixture(scope="module")
def shell(toy, tmp_path_factory):
    """A `Shell` in a copy of the toy run's folder, which the export is written into."""
    return toy.copy(tmp_path_factory.mktemp("converted"))


@pytest.fixture(scope="module")
def engine(shell):
    """The translator of CTranslate2 from the exported folder, and the tokenizer of its pieces."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    sentencepiece = pytest.importorskip("sentencepiece")
    exported = shell.run("export", f"--model_dir={RUN}", "--format=ctranslate2")
    assert f"exported to {CONVERTED}".encode() in exported.stdout
    model_file = str(shell.folder / CONVERTED / "vocabulary.model")
    pieces = sentencepiece.SentencePieceProcessor(model_file=model_file)
    return ctranslate2.Translator(str(shell.folder / CONVERTED), compute_type="float32"), pieces


@pytest.fixture(scope="module")
def text(toy):
    description = json.loads((toy.folder / RUN / "model.json").read_text(encoding="utf-8"))
    return corpora.load(**description["corpus"]).test


def test_a_beam_finds_the_same_translations(toy, engine, text):
    ctranslate2, pieces = engine
    sources = [pieces.encode(line, out_type=str) for line in text.sources]
    results = ctranslate2.translate_batch(
        sources, beam_size=4, length_penalty=0, max_decoding_length=100
    )
    theirs = [pieces.decode(result.hypotheses[0]) for result in results]
    live = Translator.load(toy.folder / RUN, beam_size=4, length_penalty=0.0)
    ours = live.translate(text.sources)
    assert sum(a == b for a, b in zip(ours, theirs, strict=True)) >= 0.99 * len(ours)
    assert len(set(ours)) > len(ours) / 2


def test_an_existing_export_is_not_overwritten(shell, engine):
    again = shell("export", f"--model_dir={RUN}", "--format=ctranslate2")
    assert again.returncode == 1
    assert again.stderr.startswith(f"error: {CONVERTED} exists.".encode())
    assert again.stderr.count(b"\n") == 1


# The SavedModel in a C++ program without Python, as in TF Serving; it is compiled with the headers
# and libraries of the wheel.
SOURCE = pathlib.Path(__file__).parents[1] / "saved_models" / "translate.cc"
LIBRARY = pathlib.Path(tf.sysconfig.get_lib())
OPS = pathlib.Path(tensorflow_text.__file__).parent / "python/ops/_sentencepiece_tokenizer.so"


def in_cpp(test):
    needed = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++ to compile with")
    return pytest.mark.slow(needed(test))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("cpp") / "translate"
    libraries = [f"-l:{name}" for name in ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")]
    command = ["g++", *tf.sysconfig.get_compile_flags(), SOURCE, "-o", path]
    command += [f"-L{LIBRARY}", *libraries, f"-Wl,-rpath,{LIBRARY}"]
    printed(*command)
    return path


def translate(program, model, lines):
    return subprocess.run(
        [program, model, OPS],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )


@in_cpp
def test_a_program_without_python_translates_like_the_live_model(program, toy, live):
    draw = random.Random(6)
    lines = [
        "",
        "  ",
        "日本語 😀",
        *(" ".join(draw.choices("abcdefghijklmnopqrst", k=draw.randint(1, 14))) for _ in range(61)),
    ]
    process = translate(program, toy.folder / "saved_models/reverse_words_reversed/1", lines)
    assert process.returncode == 0, process.stderr.decode()
    assert process.stdout.decode().splitlines() == live.translate(lines)
    assert b"loaded in" in process.stderr
    linked = printed("ldd", program)
    assert "libtensorflow_cc" in linked
    assert "libpython" not in linked


@in_cpp
def test_control_a_folder_without_a_model_is_refused(program, tmp_path):
    process = translate(program, tmp_path, ["a"])
    assert process.returncode == 1
    assert b"loading: " in process.stderr
