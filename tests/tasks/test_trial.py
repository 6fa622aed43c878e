"""The line that says how an export is tried: a shell reads the text as it is."""

import pathlib
import shlex

import pytest

from keras_transformer.runs.run import tried_by
from keras_transformer.tasks.text_task import TRIAL


@pytest.mark.parametrize("text", ["a b", "It's 5 o'clock", '"$HOME" `x`', "", "\\n", "{x}"])
def test_a_shell_reads_the_text_as_it_is(text):
    line = tried_by(TRIAL % "predict", [text], pathlib.Path("saved_models/m/1"))
    assert shlex.split(line) == [
        *("echo", text, "|"),
        *("python", "-m", "keras_transformer.predict", "--model=saved_models/m/1"),
    ]


def test_a_task_that_tries_nothing_says_nothing():
    assert tried_by("", [[0.5]], pathlib.Path("saved_models/m/1")) == ""
