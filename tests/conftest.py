"""What all tests share: a program that commands are forked from, and folders that stay as is."""

import pathlib

import pytest
from shared import SharedFolders
from shell import Shell, WarmProgram


@pytest.fixture(scope="session")
def warm():
    """The `WarmProgram` of this process."""
    program = WarmProgram()
    yield program
    program.close()


@pytest.fixture
def fresh_shell(tmp_path, warm):
    """A `Shell` in an empty folder."""
    return Shell(tmp_path, warm)


@pytest.fixture(scope="session")
def shared():
    """The `SharedFolders`: `shared.add(folder)` where a fixture gives a folder to several tests."""
    folders = SharedFolders()
    folders.add(pathlib.Path(__file__).with_name("fixtures"))
    return folders


@pytest.fixture(autouse=True)
def shared_folders_stay(shared):
    """What several tests read, none changes: a test that writes takes a copy."""
    yield
    assert [str(path) for path in shared.changes()] == []
