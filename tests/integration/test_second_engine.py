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


def test_a_beam_finds_the_same_translations_with_an_export_that_is_written_once(toy_copy):
    ctranslate2 = pytest.importorskip("ctranslate2")
    sentencepiece = pytest.importorskip("sentencepiece")
    exported = toy_copy.run("export", f"--model_dir={RUN}", "--format=ctranslate2")
    assert f"exported to {CONVERTED}".encode() in exported.stdout
    again = toy_copy("export", f"--model_dir={RUN}", "--format=ctranslate2")
    assert again.stderr.startswith(f"error: {CONVERTED} exists.".encode())

    description = json.loads((toy_copy.folder / RUN / "model.json").read_text(encoding="utf-8"))
    lines = corpora.load(**description["corpus"]).test.sources
    folder = toy_copy.folder / CONVERTED
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
    results = ctranslate2.Translator(str(folder), compute_type="float32").translate_batch(
        [pieces.encode(line, out_type=str) for line in lines],
        beam_size=4,
        length_penalty=0,
        max_decoding_length=100,
    )
    theirs = [pieces.decode(result.hypotheses[0]) for result in results]
    live = Translator.load(toy_copy.folder / RUN, beam_size=4, length_penalty=0.0)
    ours = live.translate(lines)
    assert sum(a == b for a, b in zip(ours, theirs, strict=True)) >= 0.99 * len(ours)
    assert len(set(ours)) > len(ours) / 2


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
