"""Outputs: files are written whole, links and pipes stay as they are."""

import concurrent.futures
import gzip
import importlib
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys

import pytest
from command_flags import flags_of
from shared import SharedFolders, TemporaryFolder

from keras_transformer import export, streams
from keras_transformer.tasks import TASKS


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
