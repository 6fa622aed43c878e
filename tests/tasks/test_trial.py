"""The line that says how an export is tried: a shell reads the text as it is."""

import pathlib
import shlex

import pytest

from keras_transformer.tasks.text_task import trial


@pytest.mark.parametrize("text", ["a b", "It's 5 o'clock", '"$HOME" `x`', "", "\\n"])
def test_a_shell_reads_the_text_as_it_is(text):
    line = trial(text, "predict", pathlib.Path("saved_models/m/1"))
    assert shlex.split(line) == [
        *("echo", text, "|"),
        *("python", "-m", "keras_transformer.predict", "--model=saved_models/m/1"),
    ]
