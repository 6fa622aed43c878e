"""A run and a SavedModel of each task, written by 225f921, still load and give the same answers.
`answers.json` has each command and its output.
"""

import json
import pathlib

import numpy as np
import pytest
from shared import unpack
from shell import Shell

pytestmark = pytest.mark.slow
RELEASE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_7"
ANSWERS = json.loads((RELEASE / "answers.json").read_text(encoding="utf-8"))
CASES = [
    (task, model, index)
    for task, rows in ANSWERS.items()
    for index in range(len(rows))
    for model in rows[index]["models"]
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory, warm):
    """{task: a `Shell` in a folder with its run and its SavedModel}."""
    shells = {}
    for task in ANSWERS:
        shell = Shell(tmp_path_factory.mktemp(task), warm)
        unpack(RELEASE / f"{task}.tar.xz", shell.folder)
        shells[task] = shell
    return shells


@pytest.fixture(scope="module")
def exported(unpacked):
    for shell in unpacked.values():
        shell.run("export", "--model_dir=run", "--export_dir=exported")
    return unpacked


def parts(line):
    """Split a line of output into its text, with None for each number, and its numbers."""
    numbers = []

    def walk(value):
        if isinstance(value, float):
            numbers.append(value)
            return None
        if isinstance(value, list):
            return [walk(element) for element in value]
        if isinstance(value, dict):
            return {name: walk(member) for name, member in value.items()}
        return value

    try:
        return walk(json.loads(line)), numbers
    except json.JSONDecodeError:
        return line, numbers


@pytest.mark.parametrize(("task", "model", "index"), CASES)
def test_it_answers_as_it_did(task, model, index, exported):
    row = ANSWERS[task][index]
    name, *flags = row["command"]
    process = exported[task](name, f"--model={model}", *flags, stdin=row["input"].encode())
    assert process.returncode == 0, process.stderr.decode()
    lines = process.stdout.decode().splitlines()
    assert len(lines) == len(row["output"])
    for line, expected in zip(lines, row["output"], strict=True):
        words, numbers = parts(line)
        expected_words, expected_numbers = parts(expected)
        assert words == expected_words
        np.testing.assert_allclose(numbers, expected_numbers, rtol=0, atol=2e-5)
