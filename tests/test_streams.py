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


def test_a_link_stays_a_link(tmp_path):
    file = tmp_path / "file"
    link = tmp_path / "link"
    file.write_text("before")
    link.symlink_to(file)
    assert streams.write_lines(str(link), ["after"])
    assert link.is_symlink()
    assert file.read_text() == "after\n"


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
