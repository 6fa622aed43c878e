"""The newest version is served; an old one is unloaded when no request uses it."""

import contextlib
import functools
import os
import pathlib
import queue
import shutil
import sys
import threading

import pytest
import tensorflow as tf
from shell import wait_until

pytest.importorskip("fastapi")

from keras_transformer.saved_models.versions import newest_version
from keras_transformer.server import served_versions, tensorflow_model
from keras_transformer.server.served_versions import State, Versions, model_of
from pipelines.vocabularies.protected_spans import ProtectedSpans


class Model:
    """Stands for a SavedModel; the file in its folder says whether it can be loaded."""

    def __init__(self, folder):
        if (folder / "saved_model.pb").read_text() == "broken":
            raise ValueError("cannot be parsed\nby anyone")
        self.warm, self.closed = False, threading.Event()
        self.extras = folder

    def warm_up(self):
        self.warm = True

    def close(self):
        self.closed.set()


def put(folder, version, content="good"):
    """A version that appears whole, as an export does."""
    temporary = folder / f".{version}.tmp"
    temporary.mkdir(parents=True)
    (temporary / "saved_model.pb").write_text(content)
    os.rename(temporary, folder / str(version))


@pytest.fixture
def folder(tmp_path):
    put(tmp_path / "m", "00000001")
    return tmp_path / "m"


@pytest.fixture
def versions(folder):
    versions = Versions(folder, Model)
    yield versions
    versions.close()


def served(versions):
    with versions.use("m") as version:
        return version.number


NO_VERSIONS = ("x", "11.tmp", "-12", "+13", " 14", "15 copy", "16.0", "1e2", "\u0661\u0667")


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (("10", "9"), "10"),
        (("00000009", "00000010"), "00000010"),
        (("00000002", "1"), "00000002"),
        # As in TF Serving, in any order of writing.
        (("1", "00000001"), "1"),
        (("0",), "0"),
        # A time in nanoseconds, and a number beyond 64 bits.
        (("1764000000000000000", str(2**63)), "1764000000000000000"),
        (("7", *NO_VERSIONS), "7"),
    ],
)
def test_versions_are_numbers_and_the_highest_is_the_newest(tmp_path, names, newest):
    for name in names:
        put(tmp_path, name)
    (tmp_path / "5000000000000000000").mkdir()
    (tmp_path / "6000000000000000000").write_text("a file")
    (tmp_path / "7000000000000000000").symlink_to("nowhere")
    assert newest_version(tmp_path) == tmp_path / newest


def test_a_version_may_be_a_link_and_hold_links_to_nothing(versions, folder, tmp_path):
    put(tmp_path / "elsewhere", "new")
    (tmp_path / "elsewhere" / "new" / "notes").symlink_to("nowhere")
    (folder / "2").symlink_to(tmp_path / "elsewhere" / "new")
    versions.poll()
    assert served(versions) == 2


def test_a_version_that_goes_while_it_is_loaded_leaves_the_old_one(versions, folder):
    def vanish(path):
        shutil.rmtree(path)
        return Model(path)

    put(folder, 2)
    versions._load = vanish
    versions.poll()
    assert "No such file" in versions.states[2].error
    versions.poll()
    assert served(versions) == 1
    assert 2 not in versions.states
    put(folder, 2)
    versions._load = Model
    versions.poll()
    assert served(versions) == 2
    # A version is loaded once its graph is there.
    (folder / "3" / "variables").mkdir(parents=True)
    versions.poll()
    assert 3 not in versions.states
    (folder / "3" / "saved_model.pb").write_text("good")
    versions.poll()
    assert served(versions) == 3


def test_the_error_of_a_graph_is_its_cause_alone(versions, folder):
    """TensorFlow's error for weights that are missing."""

    def fail(path):
        raise tf.errors.NotFoundError(
            None,
            None,
            "Graph execution error:\n\n2 root error(s) found.\n"
            "  (0) NOT_FOUND: {{function_node __inference_f_2}} Key w not found in checkpoint\n"
            "\t [[{{node restore}}]]",
        )

    put(folder, 2)
    versions._load = fail
    versions.poll()
    assert versions.states[2] == State("END", "Key w not found in checkpoint")


def test_a_version_that_cannot_have_the_terms_of_a_glossary_is_not_served(folder):
    with pytest.raises(ValueError, match=r"1 cannot be loaded: a glossary needs .* Leave it out"):
        Versions(folder, Model, terms={"light": "Leuchte"})
    ProtectedSpans(("tags",)).save(folder / "00000001")
    with contextlib.closing(Versions(folder, Model, terms={"light": "Leuchte"})) as versions:
        put(folder, 2)
        versions.poll()
        assert served(versions) == 1
        # Its terms are read already, so that no request waits for them.
        with versions.use("m") as version:
            assert "glossary" in vars(version)
            assert {"_in_sentences", "_in_capitals"} <= vars(version.glossary).keys()


@pytest.mark.parametrize("name", ["2", "00000002"])
def test_a_new_version_replaces_the_old_one_and_is_served_by_its_number(versions, folder, name):
    with versions.use("m") as version:
        old = version.model
        assert old.warm
    put(folder, name)
    versions.poll()
    assert served(versions) == 2
    assert old.closed.is_set()
    assert versions.states == {1: State("END"), 2: State("AVAILABLE")}


def test_the_old_version_stays_as_long_as_a_request_uses_it(versions, folder):
    put(folder, 2)
    with versions.use("m") as version:
        poll = threading.Thread(target=versions.poll)
        poll.start()
        wait_until(lambda: versions.states[1].state == "UNLOADING")
        assert served(versions) == 2
        assert not version.model.closed.is_set()
    poll.join()
    assert version.model.closed.is_set()


def test_a_broken_version_leaves_the_old_one_and_is_tried_once(versions, folder):
    events = []
    versions._log = lambda event, **details: events.append((event, details))
    put(folder, 2, "broken")
    versions.poll()
    versions.poll()
    assert served(versions) == 1
    assert events == [
        ("loading", {"version": 2}),
        ("broken", {"version": 2, "error": "cannot be parsed"}),
    ]
    assert versions.states[2] == State("END", "cannot be parsed")
    shutil.rmtree(folder / "2")
    versions.poll()
    assert versions.states == {1: State("AVAILABLE")}


@pytest.mark.parametrize("mended", ["saved_model.pb", "variables", "linked/variables.index"])
def test_a_broken_version_is_tried_again_when_a_file_of_it_changes(
    versions, folder, tmp_path, mended
):
    put(folder, 2, "broken")
    (tmp_path / "variables").mkdir()
    (folder / "2" / "linked").symlink_to(tmp_path / "variables")
    versions.poll()
    versions._load = lambda path: Model(folder / "00000001")
    versions.poll()
    assert served(versions) == 1
    (folder / "2" / mended).write_text("all of it")
    versions.poll()
    assert served(versions) == 2
    shutil.rmtree(folder)
    versions.poll()
    assert versions.states[2] == State("AVAILABLE")


def test_a_version_in_a_folder_of_another_user_is_told(versions, folder, monkeypatch):
    (folder / "2").mkdir()
    versions.poll()
    assert versions.states.keys() == {1}
    # Root may enter each folder.
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "2")
    versions.poll()
    assert versions.states[2].error
    assert served(versions) == 1


def test_the_previous_version_is_served_again_when_folders_are_removed(versions, folder):
    put(folder, 2)
    versions.poll()
    for removed in (folder / "2", folder):
        shutil.rmtree(removed)
        versions.poll()
        assert served(versions) == 1


def test_a_folder_is_still_watched_when_a_version_cannot_be_unloaded(folder):
    class Stuck(Model):
        def close(self):
            raise RuntimeError("no session")

    events = queue.Queue()
    versions = Versions(folder, Stuck, lambda event, **details: events.put((event, details)))
    versions.watch(0.001)
    put(folder, 2)
    while (event := events.get(timeout=60)) != ("poll failed", {"error": "no session"}):
        assert event[0] in ("loading", "available")
    put(folder, 3)
    while events.get(timeout=60) != ("available", {"version": 3}):
        pass
    versions._stop.set()
    versions._watcher.join()


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, FileNotFoundError, "there is no folder .*: --model_base_path must be"),
        ([], FileNotFoundError, "has no versions: .* Name the folder that has them,"),
        (["broken"], ValueError, "1 cannot be loaded: cannot be parsed$"),
    ],
)
def test_without_a_model_there_is_no_server(tmp_path, content, error, words):
    if content is not None:
        (tmp_path / "m").mkdir()
        for number, text in enumerate(content, 1):
            put(tmp_path / "m", number, text)
    with pytest.raises(error, match=words):
        Versions(tmp_path / "m", Model)


def test_a_version_is_loaded_and_warmed_up_while_nothing_large_begins(folder):
    events = []

    class Recording(Model):
        def warm_up(self):
            events.append("warm")

    @contextlib.contextmanager
    def alone():
        events.append("held")
        yield
        events.append("free")

    versions = Versions(folder, Recording, alone=alone)
    versions.close()
    assert events == ["held", "warm", "free"]


def test_an_older_whole_version_is_served_at_start(folder):
    put(folder, 2, "broken")
    versions = Versions(folder, Model)
    assert served(versions) == 1
    assert versions.states[2].state == "END"
    versions.close()


def test_a_saved_model_that_replaces_graphs_starts_tensorflow_as_the_command_does(monkeypatch):
    started = []
    names = ["start_tensorflow", "spread_over_cores"]
    for name in names:
        monkeypatch.setattr(served_versions, name, functools.partial(started.append, name))
    monkeypatch.setattr(tensorflow_model, "TensorFlowModel", str)
    assert (model_of(pathlib.Path("m/1")), started) == ("m/1", [])
    monkeypatch.delitem(sys.modules, "tensorflow")
    assert (model_of(pathlib.Path("m/2")), started) == ("m/2", names)
