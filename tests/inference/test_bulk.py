"""A corpus in shards: each line once, in order, with its number; the same bytes whether the run was
killed or not.
"""

import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from command_flags import flags_of
from drawn_models import random_model
from shell import read_until, wait_until, without_tensorflow

pytest.importorskip("apache_beam")
pytest.importorskip("babel")
pytest.importorskip("regex")
pytest.importorskip("tf2onnx")

from keras_transformer import translate_corpus
from keras_transformer.decoding import DecodingOptions
from keras_transformer.flags import RESUMES
from keras_transformer.inference import bulk, portable_export
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.line_files import as_lines
from pipelines.prepare import beam_runner

ROOT = pathlib.Path(__file__).parents[2]
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """Leave this process' threads alone."""
    monkeypatch.setattr("keras_transformer.startup.spread_over_cores", lambda: 1)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")


@pytest.fixture(scope="module")
def folder(pieces, tmp_path_factory):
    options = DecodingOptions(beam_size=2, max_length="+2")
    module = TranslationModule(random_model(), pieces, options)
    path = tmp_path_factory.mktemp("bulk") / "model"
    portable_export.export(module, path, {"task": "translation"}, ["a b"])
    return path


@pytest.fixture
def corpus(tmp_path):
    """Two files, one of them compressed, with 23 and 9 lines, of which two cannot be translated."""
    sentences = ([WORDS[number * step % 8] for step in range(number % 6)] for number in range(32))
    lines = [" ".join(words).encode() for words in sentences]
    lines[5] = b"a \xff b"
    lines[25] = b"a b " * 600
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.txt").write_bytes(b"\n".join(lines[:23]) + b"\n")
    (tmp_path / "in" / "2.txt.gz").write_bytes(gzip.compress(b"\n".join(lines[23:])))
    return lines


def arguments(folder, tmp_path, output="out/t", *more):
    return [
        f"--model={folder}",
        f"--input={tmp_path}/in/*",
        f"--output={tmp_path}/{output}",
        "--shard_lines=5",
        *more,
    ]


def run(folder, tmp_path, output="out/t", *more):
    translate_corpus.main(flags_of("translate_corpus", *arguments(folder, tmp_path, output, *more)))


def written(tmp_path, output="out"):
    return {path.name: path.read_bytes() for path in sorted((tmp_path / output).glob("t-*"))}


def test_each_line_is_there_once_in_order_with_its_number(folder, corpus, tmp_path, capsys):
    run(folder, tmp_path)
    files = written(tmp_path)
    shards = [name for name in files if not name.endswith(".failed.tsv")]
    assert shards == [f"t-{number:05d}-of-00007.tsv" for number in range(7)]
    whole = "".join(files[name].decode() for name in shards)
    rows = [line.split("\t") for line in whole.split("\n")[:-1]]
    good = [number for number in range(1, 33) if number not in (6, 26)]
    assert [int(number) for number, _ in rows] == good
    expected = Translator.load(folder).translate([corpus[number - 1].decode() for number in good])
    assert as_lines(text for _, text in rows) == as_lines(expected)
    failed = {name: files[name].decode() for name in files if name not in shards}
    assert [*failed] == ["t-00001-of-00007.failed.tsv", "t-00005-of-00007.failed.tsv"]
    [number, reason, text] = failed["t-00001-of-00007.failed.tsv"].strip("\n").split("\t")
    assert (number, reason, text) == ("6", "It is not UTF-8.", "a \ufffd b")
    [number, reason, _] = failed["t-00005-of-00007.failed.tsv"].split("\t")
    assert number == "26"
    assert "more than the 1,024 allowed" in reason
    output = capsys.readouterr().out
    assert "7 of 7 shards to make" in output
    assert "Shards with lines that failed: 2, in " in output


def test_a_second_run_writes_missing_shards_with_the_same_bytes(folder, corpus, tmp_path, capsys):
    run(folder, tmp_path, "whole/t")
    whole = written(tmp_path, "whole")
    run(folder, tmp_path)
    for name in ("t-00001-of-00007.tsv", "t-00005-of-00007.tsv", "t-00005-of-00007.failed.tsv"):
        (tmp_path / "out" / name).unlink()
    capsys.readouterr()
    # One pass for each missing shard.
    run(folder, tmp_path, "out/t", "--shards_at_once=1")
    output = capsys.readouterr().out
    assert "2 of 7 shards to make" in output
    assert "10 lines in " in output
    assert written(tmp_path) == whole
    run(folder, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["0 of 7 shards to make.", "All shards are there already."]
    # Output files that --input matches too are not read as input.
    for _ in range(2):
        run(folder, tmp_path, "in/t", "--gzip")
    zipped = {
        name.removesuffix(".gz"): gzip.decompress(data)
        for name, data in written(tmp_path, "in").items()
    }
    assert zipped == whole
    # A control: each file has bytes of its own.
    assert len({*whole.values()}) == len(whole)


def test_a_run_that_was_killed_is_finished_without_tensorflow(folder, corpus, tmp_path):
    run(folder, tmp_path, "whole/t")
    flags = [*arguments(folder, tmp_path), "--shards_at_once=2"]
    command = without_tensorflow("translate_corpus", *flags)
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    read_until(process, b"shards to make")
    wait_until(lambda: written(tmp_path) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < len(written(tmp_path)) < 9
    completed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert completed.stderr == b""
    assert written(tmp_path) == written(tmp_path, "whole")
    assert {path.suffix for path in (tmp_path / "out").glob("[!.]*")} == {".tsv", ".json"}


@pytest.mark.slow
def test_several_processes_make_the_same_bytes(folder, corpus, tmp_path):
    run(folder, tmp_path, "whole/t")
    command = [sys.executable, "-m", "keras_transformer.translate_corpus"]
    command += [*arguments(folder, tmp_path), "--processes=2"]
    completed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert completed.stderr == b""
    assert written(tmp_path) == written(tmp_path, "whole")


def workers_of(pid):
    """The ids of Beam's workers that a process has started, without a shell between."""
    command = ["ps", "-ww", "--ppid", str(pid), "-o", "pid=,args="]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [row.split() for row in completed.stdout.splitlines()]
    return [int(row[0]) for row in rows if row[1:] == [sys.executable, "-m", beam_runner.WORKER]]


@pytest.fixture
def two_process_command(folder, corpus, tmp_path):
    """A command that has written a shard, and its workers."""
    command = [sys.executable, "-m", "keras_transformer.translate_corpus"]
    command += [*arguments(folder, tmp_path), "--processes=2", "--shards_at_once=1"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    workers = []
    while not (written(tmp_path) and workers) and process.poll() is None:
        workers = workers_of(process.pid)
    yield process, workers
    # In case the test fails.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_ctrl_c_ends_several_processes_in_one_line(two_process_command):
    process, workers = two_process_command
    # As from a terminal, on a busy machine where the workers get the signal first.
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGINT)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate()[1].decode() == f"error: {RESUMES}\n"
    assert process.returncode == 130


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_command(two_process_command, folder, tmp_path):
    process, _ = two_process_command
    # A worker that has ended its work is replaced by a new one.
    while process.poll() is None:
        for worker in workers_of(process.pid)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    [line] = process.communicate()[1].decode().splitlines()
    assert line.startswith("error: Worker subprocess exited with return code -9. Did it run out ")
    assert process.returncode == 1
    assert 0 < len(written(tmp_path)) < 9
    run(folder, tmp_path, "whole/t")
    run(folder, tmp_path)
    assert written(tmp_path) == written(tmp_path, "whole")


def test_shards_of_another_input_or_model_are_refused(folder, corpus, tmp_path):
    run(folder, tmp_path)
    record = json.loads((tmp_path / "out" / "t.json").read_text())
    assert [file["lines"] for file in record["files"]] == [23, 9]
    options = r"{'options': {}}\. Received: {'options': {'beam_size': 1}}\. "
    with pytest.raises(ValueError, match=f"made with other model: {options}"):
        run(folder, tmp_path, "out/t", "--beam_size=1")
    words = tmp_path / "words"
    words.write_text("c")
    run(folder, tmp_path, "out/w", f"--forbidden={words}")
    words.write_text("d")
    with pytest.raises(ValueError, match="made with other model"):
        run(folder, tmp_path, "out/w", f"--forbidden={words}")
    with pytest.raises(ValueError, match="made with other shard_lines"):
        run(folder, tmp_path, "out/t", "--shard_lines=6")
    with pytest.raises(FileNotFoundError, match="names no file"):
        run(folder, tmp_path, "out/t", "--input=/nowhere/*")
    # What another prefix has is no shard of this one.
    (tmp_path / "out" / "t.json").rename(tmp_path / "t.json")
    with pytest.raises(
        ValueError, match=r"t\.json says what .*t-0.* was made with, and is missing"
    ):
        run(folder, tmp_path)
    (tmp_path / "t.json").rename(tmp_path / "out" / "t.json")
    for more in ("t-more", "t-2019"):
        run(folder, tmp_path, f"out/{more}")
    for path in (tmp_path / "out").glob("t-0*"):
        path.unlink()
    run(folder, tmp_path)
    (tmp_path / "out" / "t.json").unlink()
    for path in (tmp_path / "out").glob("t-0*"):
        path.unlink()
    run(folder, tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="all that it names is empty"):
        run(folder, tmp_path, "out/t", f"--input={tmp_path}/empty")
    for name in ("a.PO", "b.html.gz", "c.tmx"):
        (tmp_path / name).write_bytes(gzip.compress(b"a"))
        with pytest.raises(ValueError, match=rf"must name files of lines\. Received: .*{name}\. T"):
            run(folder, tmp_path, "out/t", f"--input={tmp_path}/?.*")
        (tmp_path / name).unlink()
    path = tmp_path / "in" / "1.txt"
    text = path.read_bytes()
    # One more line, then changed lines of the same lengths.
    for changed in (text + b"one more\n", text.swapcase()):
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="made with other files"):
            run(folder, tmp_path)
    path.write_bytes(text)
    # The same text in another folder is accepted.
    (tmp_path / "in").rename(tmp_path / "moved")
    run(folder, tmp_path, "out/t", f"--input={tmp_path}/moved/*")
    (tmp_path / "moved").rename(tmp_path / "in")
    # A record without shards, as a wrong --model leaves it, refuses nothing.
    for shard in written(tmp_path):
        (tmp_path / "out" / shard).unlink()
    run(folder, tmp_path)


def test_a_newer_version_is_another_model(folder, corpus, tmp_path):
    versions = shutil.copytree(folder, tmp_path / "model")
    run(versions, tmp_path)
    shutil.copytree(versions / "1", versions / "2")
    with pytest.raises(ValueError, match="made with other model"):
        run(versions, tmp_path)
    # The control: the older one goes on.
    run(versions / "1", tmp_path)


def test_a_shard_is_written_if_all_its_lines_are_there_each_as_one_line(tmp_path):
    shard = bulk.Shard(0, "x", 0, 3, 1)
    plan = bulk.Plan(str(tmp_path / "t"), (shard,), "")
    # As `translate` writes them: a line ends at "\n" alone.
    texts = [bulk.Line(2, "a", "b\tc\r\nd\u2028e"), bulk.Line(3, "a", "b")]
    lines = [bulk.Line(1, "a\tb", None, "no\nway"), *texts]
    for wrong in (lines[:2], [*lines, lines[0]]):
        with pytest.raises(ValueError, match="Leave the input alone"):
            plan.write(0, [wrong])
    assert plan.shards_to_write() == [shard]
    assert plan.write(0, [lines[2:], lines[:2]]) == (3, 1)
    assert plan.path(shard).read_text(encoding="utf-8") == "2\tb c d\u2028e\n3\tb\n"
    assert plan.path(shard, bulk.FAILED).read_text() == "1\tno way\ta b\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--output=x"], "--model is missing"),
        (["--model=m"], "--input must name files, such as 'text/"),
        (["--model=m", "--input=i", "--output=-"], "--output must name a prefix of files"),
        (["--model=m", "--input=i", "--output=out/"], "--output must name a prefix of files"),
        (["--model=m", "--stream"], "--stream is a flag of other commands"),
        (["--model=m", "--prefix_file=p"], "--prefix_file is a flag of other commands"),
        (["--model=m", "--input=i", "--output=o", "--num_hypotheses=2"], "must be 1"),
        (["--model=m", "--input=i", "--output=o", "--runner=R", "--processes=2"], "exclude"),
        (["--model=m", "--input=i", "--output=o", "--samples=1", "--beam_size=2"], "exclude"),
        (["--model=m", "--input=i", "--output=o"], "no model at m"),
        (["--model=.", "--input=i", "--output=o"], "holds no checkpoint"),
        (["--model=m", "--input=i", "--output=/proc/o"], "^--output=/proc/o cannot be written"),
    ],
)
def test_flags_that_make_no_sense_are_refused(flags, message):
    with pytest.raises((ValueError, OSError), match=message):
        translate_corpus.main(flags_of("translate_corpus", *flags))


def test_an_option_of_no_saved_model_is_refused_before_the_text_is_read(tmp_path):
    (tmp_path / "saved_model.pb").touch()
    flags = (f"--model={tmp_path}", f"--output={tmp_path}/o", "--input=nowhere")
    with pytest.raises(ValueError, match="no_repeat_ngram_size=2: a SavedModel takes"):
        translate_corpus.main(flags_of("translate_corpus", *flags, "--no_repeat_ngram_size=2"))
    with pytest.raises(FileNotFoundError, match="names no file"):  # A control.
        translate_corpus.main(flags_of("translate_corpus", *flags, "--beam_size=2"))
