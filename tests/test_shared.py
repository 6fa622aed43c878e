"""A test that writes into what others read is found."""

import shutil

import pytest
from shared import SharedFolders, TemporaryFolder


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("model.json", "checkpoints/step-1.npz", "checkpoints/step-2.npz"):
        (folder / name).write_text("as it was", encoding="utf-8")
    return folder


def test_readers_and_writers_of_copies_change_nothing(folder, tmp_path):
    shared = SharedFolders()
    assert shared.add(folder) == folder
    (folder / "model.json").read_bytes()
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.json").write_text("changed", encoding="utf-8")
    assert shared.changes() == []


WRITERS = {
    "written": (lambda folder: (folder / "model.json").write_text("other"), ["model.json"]),
    "replaced": (
        lambda folder: (folder / "checkpoints" / "step-2.npz").replace(folder / "model.json"),
        ["checkpoints", "checkpoints/step-2.npz", "model.json"],
    ),
    "added": (lambda folder: (folder / "averaged.npz").touch(), [".", "averaged.npz"]),
    "removed": (
        lambda folder: (folder / "checkpoints" / "step-1.npz").unlink(),
        ["checkpoints", "checkpoints/step-1.npz"],
    ),
}


@pytest.mark.parametrize("how", WRITERS)
def test_control_a_change_is_told_once(folder, how):
    write, paths = WRITERS[how]
    shared = SharedFolders()
    shared.add(folder)
    write(folder)
    told = [path.relative_to(folder).as_posix() for path in shared.changes()]
    assert set(paths) <= set(told) <= {".", *paths}
    assert shared.changes() == []


def test_what_stays_in_a_temporary_folder_is_told_with_its_test(tmp_path):
    folder = TemporaryFolder(tmp_path)
    (tmp_path / "before").touch()
    folder.look("first")
    (tmp_path / "before").unlink()
    for name in ("stays", "pytest-of-me", "__autograph_generated_file1.py"):
        (tmp_path / name).touch()
    folder.look("second")
    folder.look("third")
    assert folder.left() == {"stays": "second"}
