"""What all tests share: a program that commands are forked from, folders that stay as is, and a
temporary folder of their own that is empty in the end.
"""

import gc
import os
import pathlib
import random
import shutil
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, Phase, settings
from shared import SharedFolders, TemporaryFolder
from shell import Shell, WarmProgram

LONG = "integration"
# Folders whose graphs are run as they are, see `_optimize`.
AS_THEY_ARE = ("decoding", "evaluation", "inference", "pipelines", "runs", "tasks", "visualization")
TEMPORARY = pytest.StashKey[str]()

# What the commands set for themselves. JAX would set a lower level when a test imports it, and the
# commands would inherit that.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# The time of an example depends on how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
# Requests to a server: the same examples in each run, which are neither shrunk nor remembered.
settings.register_profile(
    "the same each time",
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)

if "PYTEST_XDIST_WORKER" in os.environ:
    # A process for each core: more threads would only get into each other's way.
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"}

# A limit of oneDNN's instructions that TensorFlow does not know of: asked for a product in bfloat16
# it dies (SIGSEGV). Without oneDNN it computes as on the processor that the limit is for.
if os.environ.get("ONEDNN_MAX_CPU_ISA", "").startswith(("SSE", "AVX2")):
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


def pytest_configure(config):
    """Give this process, and those that it starts, a temporary folder of their own. That of a
    process of pytest-xdist lies in that of the first.
    """
    config.stash[TEMPORARY] = tempfile.mkdtemp(prefix="tests-")
    os.environ["TMPDIR"] = config.stash[TEMPORARY]
    tempfile.tempdir = None


def pytest_unconfigure(config):
    """Remove it, with the folders of `tmp_path`: `--basetemp=FOLDER` keeps these."""
    shutil.rmtree(config.stash[TEMPORARY])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Order the files: long ones neither last, where one process would run them alone, nor together
    at the beginning, where all would wait for what one of them trains. The smaller half of the rest
    comes last.
    """
    files = list(dict.fromkeys(item.path for item in items))
    long = [path for path in files if LONG in path.parts]
    rest = [path for path in files if LONG not in path.parts]
    sizes = {path: path.stat().st_size for path in rest}
    middle = sorted(sizes.values())[len(rest) // 2] if rest else 0
    rest.sort(key=lambda path: sizes[path] < middle)
    quarter = len(rest) // 4
    ordered = [*long[:1], *rest[:quarter], *long[1:], *rest[quarter:]]
    ranks = {path: rank for rank, path in enumerate(ordered)}
    items.sort(key=lambda item: ranks[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Keras draws the seeds of its weights from `random`: a test has the same weights in every
    run.
    """
    random.seed(0)
    _optimize(item)


def _optimize(item):
    """Do not optimize graphs that run once: that takes longer than to run them as they are
    (measured: 16 to 18 % of a file's seconds). Where numbers are the subject, in commands and in
    slow tests they are optimized, as users' are.
    """
    if "tensorflow" in sys.modules:
        from tensorflow.config import optimizer

        in_folder = item.path.relative_to(pathlib.Path(__file__).parent).parts[0]
        as_they_are = in_folder in AS_THEY_ARE and not item.get_closest_marker("slow")
        name = "disable_meta_optimizer"
        if optimizer.get_experimental_options().get(name, False) != as_they_are:
            optimizer.set_experimental_options({name: as_they_are})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call():
    """Seed again, as fixtures may have drawn random numbers."""
    random.seed(0)


def pytest_collection_finish():
    """Keep garbage collection from scanning imported modules at all, and new graphs as often as by
    default (measured: 1 to 4 % of a file's seconds).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 10)


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
    """No test may change a shared folder: a test that writes takes a copy."""
    yield
    assert [str(path) for path in shared.changes()] == []


@pytest.fixture(scope="session", autouse=True)
def temporary_folder():
    """The `TemporaryFolder` of this process."""
    folder = TemporaryFolder(tempfile.gettempdir())
    yield folder
    assert folder.left() == {}


@pytest.fixture(autouse=True)
def temporary_folder_watched(temporary_folder, request):
    """Look into it after each test."""
    yield
    temporary_folder.look(request.node.nodeid)
