"""Outputs: files and folders are whole or not there, whatever stops a writer and whoever else
writes; links and pipes stay as they are.
"""

import concurrent.futures
import errno
import gzip
import importlib
import json
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import threading

import pytest
import tensorflow as tf
from command_flags import flags_of
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import SharedFolders, TemporaryFolder

from keras_transformer import export, streams
from keras_transformer.tasks import TASKS
from pipelines import whole_files
from pipelines.whole_files import whole_folder, write_json, write_text, write_whole


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        assert streams.write_lines(str(pipe), ["ä", "b\nc\r\n\nd\re\u2028f\n"])
    assert read.result() == "ä\nb c  d e\u2028f\n".encode()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_without_a_name_of_its_own_is_written_to():
    """As /dev/stdout in front of `|`, and the shell's `>(...)`."""
    reader, writer = os.pipe()
    name = f"/dev/fd/{writer}"
    streams.require_writable(name)
    assert streams.write_lines(name, ["a"])
    os.close(writer)
    with open(reader, "rb") as pipe:
        assert pipe.read() == b"a\n"


def test_help_whose_reader_leaves_ends_in_silence():
    """As before `| head`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "keras_transformer.translate", "--help"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.parametrize("is_opened", [True, False], ids=["opened", "control"])
def test_messages_go_into_no_file_where_standard_error_is_closed(tmp_path, is_opened):
    program = (
        "import os, sys; from keras_transformer import flags\n"
        f"{'flags.open_closed()' if is_opened else ''}\n"
        f"files = [open({str(tmp_path / 'file')!r}, 'w') for number in range(3)]\n"
        "assert is_opened == bool(sys.stdin and not sys.stdin.read() and sys.stdout)\n"
        "os.write(2, b'a message of C++')\n"
    ).replace("is_opened", str(is_opened))
    command = f"exec {shlex.quote(sys.executable)} -c {shlex.quote(program)} <&- >&- 2>&-"
    assert subprocess.call(command, shell=True) == 0
    assert (tmp_path / "file").read_text() == ("" if is_opened else "a message of C++")


def test_a_full_disk_is_reported_in_one_line_and_flags_are_dumped_to_any_terminal():
    flags = ("--flagfile=toy.flags", "--dump_flags")
    command = [sys.executable, "-m", "keras_transformer.train", *flags]
    with open("/dev/full", "wb") as full:
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert process.returncode == 2
    assert process.stderr == b"error: [Errno 28] No space left on device\n"
    of_ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    dump = subprocess.check_output([*command, "--model_dir=ü"], env=of_ascii).decode()
    assert {"--d_model=64", "--model_dir=ü"} <= {*dump.splitlines()}


def test_a_link_stays_a_link(tmp_path):
    file = tmp_path / "file"
    link = tmp_path / "link"
    file.write_text("before")
    link.symlink_to(file)
    assert streams.write_lines(str(link), ["after"])
    assert link.is_symlink()
    assert file.read_text() == "after\n"


def test_what_is_written_to_a_gz_is_read_from_it(tmp_path):
    name = str(tmp_path / "lines.de.gz")
    assert streams.write_lines(name, ["eins", "zwei"])
    assert gzip.decompress(pathlib.Path(name).read_bytes()) == b"eins\nzwei\n"
    assert streams.read_lines(name) == ["eins", "zwei"]


def test_a_deleted_working_folder_is_reported(tmp_path):
    (tmp_path / "gone").mkdir()
    # TensorFlow is not needed, and its import takes seconds. -P: Python 3.13.0 itself fails if it
    # looks for modules in a folder that is gone.
    program = (
        "import sys; sys.modules['tensorflow'] = None; from keras_transformer import flags, streams"
        "\nflags.run(lambda _: streams.require_writable('y'), ())"
    )
    command = f'cd gone; rmdir ../gone; exec {shlex.quote(sys.executable)} -P -c "$0"'
    process = subprocess.run(["sh", "-c", command, program], cwd=tmp_path, capture_output=True)
    assert process.stderr == b"error: the working folder was deleted. Change into another.\n"


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    # Nobody can make a file in /proc, whoever runs the tests.
    (tmp_path / "link").symlink_to("/proc/a/x")
    for path, message in (
        (tmp_path, r"^--output must be a file\. Received: the folder"),
        (tmp_path / "file" / "x", r"file/x cannot be written: Not a directory in .*/file\."),
        ("/proc/a/x", r"^--output=/proc/a/x cannot be written: .* in /proc\. Name"),
        (tmp_path / "link", r"/link cannot be written: .* in /proc\. Name another file"),
    ):
        error = IsADirectoryError if path == tmp_path else OSError
        with pytest.raises(error, match=message):
            streams.require_writable(str(path))
    message = r"^--model_dir=/proc/a cannot be written: .* in /proc\. Name"
    with pytest.raises(OSError, match=message):
        streams.require_folder("--model_dir=/proc/a", "/proc/a")


def test_control_an_output_that_can_be_written_is_left_as_it_is(tmp_path):
    for folder in (tmp_path, tmp_path / "new" / "er"):
        streams.require_folder("--model_dir", folder)
        assert not any(tmp_path.iterdir())
    file = tmp_path / "file"
    file.write_text("before")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "to be")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name in ("-", "/dev/null", file, link, pipe, tmp_path / "new" / "folders" / "file"):
        streams.require_writable(str(name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "pipe"]
    assert file.read_text() == "before"


WRITERS = {
    **dict.fromkeys(("translate", "parse", "generate", "predict", "tune"), ()),
    **dict.fromkeys(("score", "align"), ("--source_file=none", "--reference_file=none")),
}


def test_commands_try_their_output_before_they_load_a_model(fresh_shell):
    commands = [(name, "--model=nowhere", "--output=.", *more) for name, more in WRITERS.items()]
    for answer in fresh_shell.all(commands):
        assert answer.stderr.startswith(b"error: --output must be a file."), answer.stderr.decode()


def test_an_export_tries_its_folder_before_it_loads_the_model(tmp_path):
    class NotLoaded:
        export_options = TASKS["translation"].export_options

    (tmp_path / "3").mkdir()
    for folder, error in (
        ("/proc/x", "=/proc/x cannot be written"),
        (tmp_path, "3 exists: a"),
    ):
        arguments = (f"--export_dir={folder}", "--version=3", f"--model_dir={tmp_path / 'run'}")
        with pytest.raises(OSError, match=error):
            export.export(NotLoaded, flags_of("export", *arguments))


def test_an_error_names_the_line_of_the_stream(monkeypatch):
    def answer(line):
        if line == "bad":
            raise ValueError("the line has 9 tokens")
        return f"{line}!\n"

    monkeypatch.setattr(streams, "standard_input", lambda: iter(["a", "b", "bad"]))
    monkeypatch.setattr(streams, "write_text", lambda name, text: written.append(text) or True)
    written = []
    with pytest.raises(ValueError, match=r"^standard input, line 3: the line has 9 tokens$"):
        streams.answer_lines(answer)
    assert written == ["a!\n", "b!\n"]


class Loud:
    """In the place of a trained model: answers in capitals."""

    @classmethod
    def load(cls, path, *arguments, **options):
        return cls()

    def lines(self, lines):
        return [line.upper() for line in lines]

    generate = lines

    def objects(self, lines):
        return [{"upper": line} for line in self.lines(lines)]


@pytest.mark.parametrize(
    ("command", "model"), [("predict", "predictor.Predictor"), ("generate", "generator.Generator")]
)
def test_a_streamed_line_is_answered_before_the_next_is_read(command, model, monkeypatch):
    def lines():
        for line in "ab":
            happened.append(line)
            yield line

    def run(*arguments):
        happened.clear()
        main(flags_of(command, "--model=m", *arguments))
        return happened

    happened = []
    main = importlib.import_module(f"keras_transformer.{command}").main
    monkeypatch.setattr(f"keras_transformer.inference.{model}", Loud)
    monkeypatch.setattr(streams, "standard_input", lines)
    monkeypatch.setattr(streams, "write_text", lambda *written: happened.append(written) or True)
    assert run("--stream") == ["a", ("-", "A\n"), "b", ("-", "B\n")]
    assert run("--output=file") == ["a", "b", ("file", "A\nB\n")]
    if command == "predict":
        assert run("--json")[2:] == [("-", '{"upper": "A"}\n{"upper": "B"}\n')]


def test_control_a_change_of_a_shared_folder_is_reported_once(tmp_path):
    folder = tmp_path / "run"
    (folder / "in").mkdir(parents=True)
    for name in ("a", "b", "in/c", "in/d"):
        (folder / name).write_text("as it was", encoding="utf-8")
    shared = SharedFolders()
    assert shared.add(folder) == folder
    # Readers, and writers of copies, change nothing.
    (folder / "a").read_bytes()
    (shutil.copytree(folder, tmp_path / "copy") / "a").write_text("changed", encoding="utf-8")
    assert shared.changes() == []
    for write, paths in (
        (lambda: (folder / "a").write_text("other"), {"a"}),
        (lambda: (folder / "in" / "c").replace(folder / "b"), {"in", "in/c", "b"}),
        (lambda: (folder / "new").touch(), {".", "new"}),
        (lambda: (folder / "in" / "d").unlink(), {"in", "in/d"}),
    ):
        write()
        names = {path.relative_to(folder).as_posix() for path in shared.changes()}
        assert paths <= names <= {".", *paths}
        assert shared.changes() == []


def test_what_stays_in_a_temporary_folder_is_reported_with_its_test(tmp_path):
    folder = TemporaryFolder(tmp_path)
    (tmp_path / "before").touch()
    folder.look("first")
    (tmp_path / "before").unlink()
    for name in ("stays", "pytest-of-me", "__autograph_generated_file1.py"):
        (tmp_path / name).touch()
    folder.look("second")
    folder.look("third")
    assert folder.left() == {"stays": "second"}


OLD = "old " * 1000
NEW = "new " * 1000


def half_way(path):
    path.write_text(NEW[: len(NEW) // 2])
    raise RuntimeError("half way")


def no_space(path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def listed(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_writer_that_fails_leaves_what_was_there_and_nothing_else(tmp_path):
    path = tmp_path / "new_folder" / "file"
    for before in ([], ["new_folder/file"]):
        with pytest.raises(RuntimeError, match="half way"):
            write_whole(path, half_way)
        assert listed(tmp_path) == ["new_folder", *before]
        assert not before or path.read_text() == OLD
        path.write_text(OLD)


def test_a_file_that_is_replaced_keeps_its_permissions_and_its_long_name(tmp_path):
    path = tmp_path / ("字" * 85)
    path.touch(mode=0o600)
    write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"


@pytest.mark.parametrize("fails", ["write", "_flush"])
def test_outdated_files_stay_until_the_new_content_is_on_the_disk(tmp_path, monkeypatch, fails):
    path = tmp_path / "file"
    outdated = tmp_path / "of_the_old"
    for file in (path, outdated):
        file.write_text(OLD)

    def write(temporary):
        temporary.write_text(NEW)
        if fails == "write":
            no_space(temporary)

    with monkeypatch.context() as patched:
        if fails == "_flush":
            patched.setattr(whole_files, "_flush", no_space)
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, write, [outdated])
    assert (path.read_text(), outdated.read_text()) == (OLD, OLD)
    # A control: nothing fails, and it goes.
    write_whole(path, lambda temporary: temporary.write_text(NEW), [outdated])
    assert (path.read_text(), listed(tmp_path)) == (NEW, ["file"])


def test_an_error_of_the_folder_names_the_file(tmp_path, monkeypatch):
    def refuse(path, **_):
        raise OSError(errno.EROFS, "Read-only", str(path))

    # There is no temporary file, and it could not be removed.
    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_whole(tmp_path / "file", refuse)
    assert caught.value.filename == str(tmp_path / "file")


def test_a_value_that_is_no_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": 2, "b": object()})
    assert (json.loads(path.read_text()), listed(tmp_path)) == ({"a": 1}, ["file"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4) | st.lists(JSON, max_size=4))
def test_json_comes_back_with_one_entry_a_line(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(path, value)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert text.count("\n") == 2 + max(len(value), 1)


def assert_writers_do_not_mix(write, path):
    """One writer is half way, or was killed there, when another begins and ends."""
    begun = threading.Event()
    ended = threading.Event()

    def slowly(file):
        with open(file, "w") as opened:
            opened.write(OLD[: len(OLD) // 2])
            opened.flush()
            begun.set()
            assert ended.wait(10)
            opened.write(OLD[len(OLD) // 2 :])

    path.write_text("oldest")
    slow = threading.Thread(target=write, args=(path, slowly))
    slow.start()
    assert begun.wait(10)
    states = [path.read_text()]
    # A preparation that goes on finds what a killed writer leaves by this name.
    left = list(path.parent.glob(".*.tmp"))
    write(path, lambda file: file.write_text(NEW))
    states.append(path.read_text())
    ended.set()
    slow.join()
    assert ([*states, path.read_text()], len(left)) == (["oldest", NEW, OLD], 1)
    assert listed(path.parent) == [path.name]


def test_writers_at_the_same_time_write_a_whole_file_each(tmp_path):
    assert_writers_do_not_mix(write_whole, tmp_path / "file")
    # The control writes in place.
    with pytest.raises(AssertionError):
        assert_writers_do_not_mix(lambda path, write: write(path), tmp_path / "file")


def calls_to_the_system(monkeypatch):
    """A list of what is flushed (the file's bytes by then) and renamed, in order."""
    calls = []
    fsync = os.fsync

    def flushed(descriptor):
        calls.append(("flush", os.fstat(descriptor).st_size))
        fsync(descriptor)

    def renaming(rename):
        def renamed(source, target):
            calls.append(("rename", pathlib.Path(target).name))
            rename(source, target)

        return renamed

    monkeypatch.setattr(os, "fsync", flushed)
    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, renaming(getattr(os, name)))
    return calls


def make_folder(path):
    with whole_folder(path) as temporary:
        (temporary / "inside").mkdir()
        (temporary / "one").write_text("1")
        (temporary / "inside" / "two").write_text("22")


def test_files_are_on_the_disk_before_they_or_their_folder_have_a_name(tmp_path, monkeypatch):
    calls = calls_to_the_system(monkeypatch)
    write_whole(tmp_path / "file", lambda file: file.write_text(NEW))
    assert calls == [("flush", len(NEW)), ("rename", "file")]
    calls.clear()
    make_folder(tmp_path / "new" / "folder")
    # The first one names the empty folder, once it is locked.
    _, *flushes, last = calls
    assert (sorted(flushes), last) == ([("flush", 1), ("flush", 2)], ("rename", "folder"))
    expected = ["folder", "folder/inside", "folder/inside/two", "folder/one"]
    assert listed(tmp_path / "new") == expected


def test_a_folder_that_fails_half_way_leaves_nothing(tmp_path):
    new = tmp_path / "new" / "models" / "1"
    for there in ([], ["new"]):
        for name in there:
            (tmp_path / name).mkdir()
        with pytest.raises(RuntimeError, match="half way"), whole_folder(new) as path:
            half_way(path / "first")
        assert listed(tmp_path) == there


def test_of_two_writers_of_a_folder_the_first_to_end_wins(tmp_path):
    message = r"folder could not be written: another process wrote it meanwhile\. Run the command"
    with pytest.raises(OSError, match=message), whole_folder(tmp_path / "folder"):
        make_folder(tmp_path / "folder")
    assert listed(tmp_path) == ["folder", "folder/inside", "folder/inside/two", "folder/one"]


HALF_WAY = """
import pathlib, sys
from pipelines.whole_files import whole_folder

with whole_folder(pathlib.Path(sys.argv[1])) as path:
    (path / "first").write_text("1")
    print(path, flush=True)
    sys.stdin.read()
"""


def test_the_next_writer_removes_what_a_killed_one_left_and_no_more(tmp_path):
    root = pathlib.Path(whole_files.__file__).parents[1]
    unrelated = ".x.tmp", ".1.backup", f".file.{'0' * 32}.tmp"
    for name in unrelated:
        (tmp_path / name).touch() if "file" in name else (tmp_path / name).mkdir()
    command = [sys.executable, "-c", HALF_WAY, str(tmp_path / "1")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=root, text=True, **pipes) as writer:
        left = pathlib.Path(writer.stdout.readline().strip())
        # A writer that is at work is left alone.
        make_folder(tmp_path / "2")
        assert (left / "first").read_text() == "1"
        writer.kill()
    assert (left / "first").exists()
    make_folder(tmp_path / "3")
    assert sorted(os.listdir(tmp_path)) == sorted([*unrelated, "2", "3"])


def test_a_folder_that_is_not_locked_yet_is_left_alone(tmp_path, monkeypatch):
    usual = whole_files.lock
    folders = []

    def locking(folder, stack):
        folders.append(folder)
        if len(folders) == 1:
            make_folder(tmp_path / "2")
        usual(folder, stack)

    monkeypatch.setattr(whole_files, "lock", locking)
    make_folder(tmp_path / "1")
    assert len(folders) == 2
    assert {"1/one", "2/one"} < {*listed(tmp_path)}


# Errors of the disk, in a temporary file or folder.
OF_THE_DISK = {
    "no space": lambda path: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "some bytes": lambda path: OSError("4096 requested and 0 written"),
    "too large": lambda path: OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path)),
    "TensorFlow's": lambda path: tf.errors.ResourceExhaustedError(
        None, None, f"{{{{function_node x}}}} {path}/part-0; No space left on device [Op:SaveV2]"
    ),
}


@pytest.mark.parametrize("name", OF_THE_DISK)
def test_an_error_of_the_disk_names_the_file(tmp_path, name):
    def write(path):
        raise OF_THE_DISK[name](path)

    path = tmp_path / "a.json"
    place = re.escape(str(path))
    with pytest.raises(OSError, match=place) as of_file:
        write_whole(path, write)
    with pytest.raises(OSError, match=place) as of_folder, whole_folder(path) as inner:
        write(inner / "variables")
    assert ".tmp" not in f"{of_file.value}{of_folder.value}"
    assert listed(tmp_path) == []


def test_control_an_error_about_another_file_or_of_a_graph_stays_as_it_is(tmp_path):
    def fail(path):
        raise tf.errors.InvalidArgumentError(None, None, "shapes differ; [2] and [3]")

    with pytest.raises(FileNotFoundError, match="another"):
        write_whole(tmp_path / "a.json", lambda path: (tmp_path / "another").read_text())
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes differ"):
        write_whole(tmp_path / "a.json", fail)
