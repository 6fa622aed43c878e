"""The wheel of the default corpus, for tests that read all of it and download nothing."""

import os
import pathlib
import re
import zipfile

import pytest

from pipelines.corpora import home_assistant


def cached_wheel():
    """Its path in the user's cache folder; skips the test where it is not."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    wheel = cache / "keras_transformer" / home_assistant.WHEEL
    if not wheel.exists():
        pytest.skip(f"{wheel} is not there: make train downloads it")
    return wheel


def languages_of(wheel):
    """The codes of all its languages but English."""
    translation = re.compile(home_assistant.TRANSLATION.format(language="(.+)"))
    with zipfile.ZipFile(wheel) as archive:
        matches = map(translation.fullmatch, archive.namelist())
        return sorted({match[1] for match in matches if match} - {"en"})
