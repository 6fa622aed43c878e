"""Home Assistant from a wheel: download, cache and splits, tested with a small wheel of the same
build and a function in place of pip.
"""

import importlib.util
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest import mock

import pytest
from home_assistant_wheel import cached_wheel
from hypothesis import given, settings
from hypothesis import strategies as st
from token_lists import complaint, pairs_of

from pipelines.corpora import HomeAssistant, home_assistant

ENGLISH = {"title": {f"key {n}": f"Text number {n}" for n in range(200)}}
GERMAN = {"title": {f"key {n}": f"Text Nummer {n}" for n in range(200)}}
DOCUMENTS = {
    "lamp/en": ENGLISH,
    "lamp/de": GERMAN,
    "lamp/ne": {"title": {"key 0": "शून्य"}},
    "lamp/en-GB": {},
    "door/fr": {"a": "b"},
}


def wheel_bytes(documents):
    """A wheel that pip accepts: a RECORD of its members, and a file beside the translations."""
    info = os.path.dirname(home_assistant.RECORD)
    version = f"Version: {home_assistant.RELEASE}\nRequires-Python: >=3.99\n"
    members = {
        "homeassistant/components/lamp/strings.json": "{}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: homeassistant\n{version}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    for name, document in documents.items():
        path = name.replace("/", "/translations/")
        members[f"homeassistant/components/{path}.json"] = json.dumps(document)
    names = (*members, home_assistant.RECORD)
    members[home_assistant.RECORD] = "".join(f"{name},,\n" for name in names)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return buffer.getvalue()


WHOLE = wheel_bytes(DOCUMENTS)
# The compressed RECORD keeps the old name.
RENAMED = WHOLE.replace(b"translations/de.json", b"translations/xx.json")
DAMAGED = WHOLE.replace(b"components/lamp/strings", b"components/lump/strings", 1)


class Pip:
    """Writes `content` as the wheel, or fails with `stderr`; records the commands in `calls`."""

    def __init__(self):
        self.content = WHOLE
        self.stderr = ""
        self.is_interrupted = False
        self.calls = []

    def __call__(self, command, **_):
        self.calls.append(command)
        if self.content is not None:
            Path(command[command.index("-d") + 1], home_assistant.WHEEL).write_bytes(self.content)
        if self.is_interrupted:
            raise KeyboardInterrupt
        return subprocess.CompletedProcess(command, int(bool(self.stderr)), "", self.stderr)


@pytest.fixture
def pip(monkeypatch):
    player = Pip()
    monkeypatch.setattr(home_assistant.subprocess, "run", player)
    return player


def load(cache, source="en", target="de"):
    languages = {"source_language": source, "target_language": target}
    return HomeAssistant(**languages, cache_dir=str(cache)).load()


def test_no_english_sentence_is_in_two_splits(tmp_path, pip):
    second = {"title": {key: f"{text}, anders" for key, text in GERMAN["title"].items()}}
    pip.content = wheel_bytes({**DOCUMENTS, "door/en": ENGLISH, "door/de": second})
    corpus = load(tmp_path)
    train, valid, test = (set(split.sources) for split in (corpus.train, corpus.valid, corpus.test))
    assert train.isdisjoint(valid | test)
    assert valid.isdisjoint(test)
    assert train | valid | test == set(ENGLISH["title"].values())
    assert len(corpus.train) + len(corpus.valid) + len(corpus.test) == 400


def test_directions_mirror_each_other(tmp_path, pip):
    forward, backward = load(tmp_path), load(tmp_path, "de", "en")
    assert (forward.source_language, forward.target_language) == ("en", "de")
    assert (backward.source_language, backward.target_language) == ("de", "en")
    for split in ("train", "valid", "test"):
        ours, theirs = (pairs_of(getattr(corpus, split)) for corpus in (forward, backward))
        assert ours == [pair[::-1] for pair in theirs]
        assert all(source.startswith("Text number ") for source, _ in ours)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("de", "fr", "must be 'en'. Received: source_language='de'"),
        ("en", "en", "must be 'en'. Received: source_language='en'"),
        ("en", "d.", "no language 'd.'. Besides en it has: de, en-GB, fr, ne."),
        ("ne", "en", "too little of 'ne': 1 usable pair(s) (train 1, valid 0, test 0)"),
        *((name, "en", f"'{name}': 0 usable pair(s) (train 0, val") for name in ("en-GB", "fr")),
    ],
)
def test_languages_that_it_does_not_have_are_refused(tmp_path, pip, source, target, message):
    assert message in complaint(ValueError, load, tmp_path, source, target)
    # Two languages that are wrong by themselves are refused without a download.
    assert bool(pip.calls) == ("must be 'en'" not in message)


# Download and cache


def test_downloads_once_and_then_needs_no_network(tmp_path, pip):
    cache = tmp_path / "not" / "there"
    first = load(cache)
    assert [path.name for path in cache.iterdir()] == [home_assistant.WHEEL]
    assert len(pip.calls) == 1
    assert pip.calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert f"homeassistant=={home_assistant.RELEASE}" in pip.calls[0]
    # The next download removes a folder of this name that a killed one left: test_streams.py.
    folder = Path(pip.calls[0][pip.calls[0].index("-d") + 1])
    assert (folder.parent, folder.match(f".*.{'?' * 32}.tmp")) == (cache, True)
    pip.stderr = "ERROR: no network"
    assert load(cache) == first
    assert len(pip.calls) == 1


def test_cache_folder_default(tmp_path, pip, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    HomeAssistant().load()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    HomeAssistant().load()
    for folder in ("xdg", "home/.cache"):
        cached = tmp_path / folder / "keras_transformer" / home_assistant.WHEEL
        assert cached.read_bytes() == WHOLE
    monkeypatch.setenv("XDG_CACHE_HOME", "~nobody_here/cache")
    with pytest.raises(OSError, match=r"no home folder is known .* Set HOME, or XDG_CACHE_HOME"):
        HomeAssistant().load()


@pytest.mark.parametrize(
    "cached", [WHOLE[:-100], WHOLE[: len(WHOLE) // 2], b"", b"<html>please log in</html>", RENAMED]
)
def test_a_broken_cache_is_reported_in_one_line_and_downloaded_again(tmp_path, pip, caplog, cached):
    wheel = tmp_path / home_assistant.WHEEL
    wheel.write_bytes(cached)
    load(tmp_path)
    assert wheel.read_bytes() == WHOLE
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert f"{wheel} is broken: " in record.getMessage()
    assert "\n" not in record.getMessage()


@settings(max_examples=150)
@given(place=st.integers(0, len(WHOLE) - 1), flip=st.integers(1, 255))
def test_no_flipped_byte_changes_the_corpus(tmp_path_factory, place, flip):
    cache = tmp_path_factory.mktemp("cache")
    flipped = bytearray(WHOLE)
    flipped[place] ^= flip
    (cache / home_assistant.WHEEL).write_bytes(flipped)
    with mock.patch.object(home_assistant.subprocess, "run", Pip()):
        corpus = load(cache)
    assert len(corpus.train) + len(corpus.valid) + len(corpus.test) == 200
    translated = [source.replace("number", "Nummer") for source in corpus.train.sources]
    assert translated == corpus.train.targets


TWO_ERRORS = "ERROR: No versions\nERROR: No such thing."


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (f"WARNING: Retrying\n{TWO_ERRORS}\n[notice] new pip", "pip said: No such thing ("),
        ("something odd\n\n", "pip said: something odd ("),
        ("\n", "pip said: nothing, exit status 1 ("),
        (f"{sys.executable}: No module named pip\n", "has no pip (python -m ensurepip installs"),
    ],
)
@pytest.mark.parametrize("cached", [None, WHOLE[:-100]])
def test_a_failing_download_says_why_and_what_to_do_and_changes_nothing(
    tmp_path, pip, stderr, reason, cached
):
    wheel = tmp_path / home_assistant.WHEEL
    if cached:
        wheel.write_bytes(cached)
    pip.stderr, pip.content = stderr, WHOLE[:1000]  # it fails halfway
    message = complaint(OSError, load, tmp_path)
    assert reason in message
    assert "--corpus=text_files" in message
    assert f"put the wheel at {wheel}" in message
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([cached] if cached else [])


def test_an_incomplete_download_is_refused_and_leaves_no_file(tmp_path, pip):
    broken = "the file is broken"
    for content, reason in ((DAMAGED, broken), (WHOLE[:-100], broken), (None, "pip downloaded no")):
        pip.content = content
        assert reason in complaint(OSError, load, tmp_path)
        assert not list(tmp_path.iterdir())
    # An interrupted download leaves none either.
    pip.content = WHOLE[:1000]
    pip.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path)
    assert not list(tmp_path.iterdir())


def test_members_that_are_not_read_are_not_checked_in_the_cache(tmp_path, pip):
    # The damage lies outside the translations: a download of it would be refused.
    (tmp_path / home_assistant.WHEEL).write_bytes(DAMAGED)
    assert len(load(tmp_path).train) > 0
    assert not pip.calls


def test_real_pip_from_a_folder(tmp_path, monkeypatch):
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this Python has no pip")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    message = complaint(OSError, load, tmp_path / "cache")
    assert "pip said: No matching distribution found" in message
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / home_assistant.WHEEL).write_bytes(WHOLE)
    assert len(load(tmp_path / "cache").train) > 0


# Which pairs are kept, which split they go to, and what the real wheel gives.
def test_pairs_align_by_key_path():
    english = {"a": {"x": " One ", "y": "Two"}, "b": {"x": "Three"}, "only": "English", "n": 1}
    german = {"b": {"x": "Drei"}, "a": {"y": "Zwei", "x": "Eins\n"}, "other": "Deutsch", "n": 1}
    german["only"] = {"x": "English"}
    expected = ([("One", "Eins"), ("Two", "Zwei"), ("Three", "Drei")], {})
    assert home_assistant.select_pairs([(english, german)]) == expected


@pytest.mark.parametrize(
    "mark",
    ["{n}", "<b>", "`x`", "a\nb", "[a](b)", "http://a", "https://a", "www.a", "**a**", "[%key%]"],
)
def test_markup_on_either_side_drops_the_pair(mark):
    plain = ({"k": "a [b] * (c) www http"}, {"k": "control"})
    documents = [({"k": mark}, {"k": "b"}), ({"k": "a"}, {"k": f"b {mark} c"}), plain]
    pairs, dropped = home_assistant.select_pairs(documents)
    assert (pairs, dropped) == ([("a [b] * (c) www http", "control")], {"markup": 2})


def test_empty_untranslated_and_duplicate_pairs_are_counted():
    english = {"1": "", "2": "a", "3": "Wi-Fi", "4": "Yes", "5": "Yes", "6": "Yes"}
    german = {"1": "x", "2": " ", "3": "Wi-Fi ", "4": "Ja", "5": "Ja", "6": "Doch"}
    pairs, dropped = home_assistant.select_pairs([(english, german)])
    assert pairs == [("Yes", "Ja"), ("Yes", "Doch")]
    assert dropped == {"empty": 2, "untranslated": 1, "duplicate": 1}


WORD = st.text(max_size=4)
TREE = st.recursive(
    WORD, lambda children: st.dictionaries(WORD, children, max_size=4), max_leaves=12
)
DOCUMENT = st.dictionaries(WORD, TREE, max_size=4)


@settings(max_examples=40)
@given(st.lists(st.tuples(DOCUMENT, DOCUMENT), max_size=4))
def test_kept_pairs_are_stripped_translated_without_markup_and_unique(documents):
    pairs, dropped = home_assistant.select_pairs(documents)
    assert len(set(pairs)) == len(pairs)
    assert set(dropped) <= {"empty", "untranslated", "markup", "duplicate"}
    for english, translation in pairs:
        assert "" != english != translation != ""
        assert (english, translation) == (english.strip(), translation.strip())
        assert not home_assistant.MARKUP.search(english + translation)


def test_split_is_the_same_on_every_machine():
    splits = [home_assistant.split_of(f"Text number {number}") for number in (0, 24, 13)]
    assert splits == ["train", "valid", "test"]


def test_real_wheel():
    broken = AssertionError("the cached wheel is broken")
    with mock.patch.object(home_assistant, "_download", side_effect=broken):
        corpus = load(cached_wheel().parent)
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (29829, 939, 981)
    assert ("Failed to connect", "Verbindung fehlgeschlagen") in pairs_of(corpus.train)
    assert not set(corpus.train.sources) & (set(corpus.valid.sources) | set(corpus.test.sources))
