"""What is written to: files whole, links and pipes as they are."""

import concurrent.futures
import os
import stat

import pytest

from keras_transformer import streams


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        assert streams.write_lines(str(pipe), ["ä", "b\nc"])
    assert read.result() == "ä\nb c\n".encode()
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


def test_a_link_stays_a_link(tmp_path):
    file = tmp_path / "file"
    link = tmp_path / "link"
    file.write_text("before")
    link.symlink_to(file)
    assert streams.write_lines(str(link), ["after"])
    assert link.is_symlink()
    assert file.read_text() == "after\n"


def test_what_cannot_be_written_is_told_before_the_work(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"^--output must be a file\. Received: the folder"):
        streams.require_writable(str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/x cannot be written: Not a directory in .*/file\."):
        streams.require_writable(str(tmp_path / "file" / "x"))
    # Nobody can make a file in /proc, whoever runs the tests.
    with pytest.raises(OSError, match=r"^--output=/proc/a/x cannot be written: .* in /proc\. Name"):
        streams.require_writable("/proc/a/x")


def test_control_what_can_be_written_is_left_as_it_is(tmp_path):
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
    "translate": (),
    "parse": (),
    "generate": (),
    "predict": (),
    "tune": (),
    "score": ("--source_file=none", "--reference_file=none"),
    "align": ("--source_file=none", "--reference_file=none"),
}


def test_commands_try_their_output_before_they_load_a_model(fresh_shell):
    commands = [
        (command, "--model=nowhere", "--output=.", *more) for command, more in WRITERS.items()
    ]
    for answer in fresh_shell.all(commands):
        assert answer.stderr.startswith(b"error: --output must be a file."), answer.stderr.decode()


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
