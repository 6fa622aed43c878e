"""What is written to: files whole, links and pipes as they are."""

import concurrent.futures
import os
import stat

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
