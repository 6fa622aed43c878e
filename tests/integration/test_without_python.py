"""The SavedModel in a C++ program, compiled against the wheel's own headers and libraries: what TF
Serving does, and no Python.
"""

import os
import pathlib
import random
import shutil
import subprocess

import pytest
import tensorflow as tf
import tensorflow_text

SOURCE = pathlib.Path(__file__).parents[1] / "saved_models" / "translate.cc"
LIBRARY = pathlib.Path(tf.sysconfig.get_lib())
OPS = (
    pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops" / "_sentencepiece_tokenizer.so"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("g++"), reason="there is no g++ to compile a C++ program with"
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("cpp") / "translate"
    libraries = [f"-l:{name}" for name in ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")]
    command = ["g++", *tf.sysconfig.get_compile_flags(), SOURCE, "-o", path]
    command += [f"-L{LIBRARY}", *libraries, f"-Wl,-rpath,{LIBRARY}"]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    return path


def translate(program, model, lines):
    return subprocess.run(
        [program, model, OPS],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )


def test_a_program_without_python_gives_the_live_model_s_strings(program, toy, live):
    draw = random.Random(6)
    lines = [
        "",
        "  ",
        "日本語 😀",
        *(" ".join(draw.choices("abcdefghijklmnopqrst", k=draw.randint(1, 14))) for _ in range(61)),
    ]
    given = translate(program, toy.folder / "saved_models" / "reverse_words_reversed" / "1", lines)
    assert given.returncode == 0, given.stderr.decode()
    assert given.stdout.decode().splitlines() == live.translate(lines)
    assert b"loaded in" in given.stderr
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libtensorflow_cc" in linked
    assert "libpython" not in linked


def test_control_a_folder_without_a_model_is_told(program, tmp_path):
    given = translate(program, tmp_path, ["a"])
    assert given.returncode == 1
    assert b"loading: " in given.stderr
