"""Each block of README and docs/ runs at toy size, in the order of its page, unless
`toy_size.NOT_RUN` has a reason not to run it.
"""

import contextlib
import importlib.util
import json
import re
import shutil
import urllib.request

import pytest
from documentation.pages import PAGES, blocks, commands, words
from documentation.toy_size import NOT_RUN, SMALLER, reason_not_to_run, smaller, write_files
from shell import Shell

# TFDS calls what protobuf 6 deprecates whenever it reads the metadata of a set.
pytestmark = pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
RUN = "runs/home_assistant_en_de"
NEEDED = {
    "keras_transformer.prepare": ("apache_beam", "babel", "regex"),
    "keras_transformer.translate_corpus": ("apache_beam", "babel", "regex"),
    "keras_transformer.serve": ("fastapi", "prometheus_client", "uvicorn"),
    "KERAS_BACKEND=jax": ("jax",),
    "--format=ctranslate2": ("ctranslate2",),
    "--format=onnx": ("onnxruntime", "tf2onnx"),
    "_onnx": ("onnxruntime", "tf2onnx"),
    "litert": ("ai_edge_litert",),
    "keras_transformer.visualize": ("matplotlib",),
    "--raw_text": ("nltk",),
    "bert_intents.flags": ("hassil", "home_assistant_intents"),
    "bert_slots.flags": ("hassil", "home_assistant_intents"),
    "vit.flags": ("sklearn",),
    "images.load(": ("sklearn",),
}


def texts():
    return {path.name: path.read_text(encoding="utf-8") for path in PAGES}


def pieces(text):
    """The units that are run: the commands of shell blocks, and whole blocks of Python."""
    for block in blocks(text):
        if block.language == "sh":
            yield from commands(block.code)
        elif block.language == "python":
            yield block.code


class Reader:
    """Runs the blocks of a page in a folder.

    Args:
        shell: the folder's `Shell`.

    Attributes:
        url: address of the server that the page has started.
    """

    def __init__(self, shell):
        self.shell = shell
        self.namespace = {}
        self.cleanup = contextlib.ExitStack()
        self.url = None

    def read(self, text):
        for block in blocks(text):
            code = smaller(block.code)
            if block.file:
                (self.shell.folder / block.file).write_text(code, encoding="utf-8")
            elif block.language == "sh":
                for command in commands(code):
                    if not reason_not_to_run(command):
                        self.run(words(command))
            elif block.language == "python" and not reason_not_to_run(code):
                exec(code, self.namespace)

    def run(self, command):
        """Run a command: `[NAME=value] [echo text |] python -m module flags [< file] [> file]`, or
        `curl [-d data] url`.
        """
        if command[0] == "curl":
            self.ask(command[-1], command[2] if command[1] == "-d" else None)
            return
        environment = {}
        while re.match(r"[A-Z_]+=", command[0]):
            name, _, environment[name] = command.pop(0).partition("=")
        stdin = b""
        if command[0] == "echo":
            end = command.index("|")
            stdin = f"{' '.join(command[1:end])}\n".encode()
            command = command[end + 1 :]
        files = {}
        for sign in ("<", ">"):
            if sign in command:
                at = command.index(sign)
                files[sign] = self.shell.folder / command[at + 1]
                command = command[:at] + command[at + 2 :]
        if "<" in files:
            stdin = files["<"].read_bytes()
        assert command[:2] == ["python", "-m"]
        name = command[2].removeprefix("keras_transformer.")
        output = self.command(name, command[3:], stdin, environment)
        if ">" in files:
            files[">"].write_bytes(output)
        if name == "translate":
            lines = stdin or (self.shell.folder / "lines.en").read_bytes()
            assert output.count(b"\n") == lines.count(b"\n")

    def command(self, name, flags, stdin, environment):
        """Run a command, the server in the background, and return what it printed."""
        if name == "serve":
            return self.serve(flags)
        if environment:
            process = self.shell.start(name, *flags, **environment)
            output, errors = process.communicate(stdin)
            status = process.returncode
        else:
            completed = self.shell(name, *flags, stdin=stdin)
            output, errors, status = (completed.stdout, completed.stderr, completed.returncode)
        assert status == 0, f"{name} {flags}: {errors.decode()}"
        return output

    def serve(self, flags):
        """Start the server, which stops at the end of the page. Its output is empty."""
        process = self.cleanup.enter_context(self.shell.start("serve", *flags, "--rest_api_port=0"))
        self.cleanup.callback(process.terminate)
        for line in process.stderr:
            event = json.loads(line)
            if event["event"] == "serving":
                self.url = event["url"]
                return b""
        raise AssertionError("the server has ended")

    def ask(self, address, data):
        """Send a request to the server that the page has started."""
        url = address.replace("127.0.0.1:8501", self.url.removeprefix("http://"))
        request = urllib.request.Request(f"http://{url}", data and data.encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, warm):
    """A `Shell` in a folder with the files that the pages assume; tests use copies of it."""
    shell = Shell(tmp_path_factory.mktemp("assumed"), warm)
    write_files(shell.folder)
    trained = shell("train", "--flagfile=tiny.flags", "--release", f"--model_dir={RUN}")
    assert trained.returncode == 0, trained.stderr.decode()
    for name in ("a", "b"):
        shutil.copytree(shell.folder / RUN, shell.folder / "runs" / name)
    return shell


@pytest.fixture
def reader(prepared, tmp_path, monkeypatch):
    """A `Reader` in a folder of its own."""
    reader = Reader(prepared.copy(tmp_path / "reader"))
    monkeypatch.chdir(reader.shell.folder)
    with reader.cleanup:
        yield reader


@pytest.mark.slow
@pytest.mark.parametrize("page", list(texts()))
def test_every_block_of_a_page_runs(page, reader):
    text = texts()[page]
    for part, packages in NEEDED.items():
        missing = [package for package in packages if not importlib.util.find_spec(package)]
        if missing and part in text:
            pytest.skip(f"{page} needs {', '.join(missing)}")
    if page == "visualization.md":
        # It draws the model that the first block of bert.md trains.
        reader.read(texts()["bert.md"].partition("trains for")[0])
    reader.read(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "```sh\npython -m keras_transformer.translate --model=runs/nowhere\n```\n",
        "```python\nfrom keras_transformer import Transducer\n```\n",
        "```sh\nrm lines.en\n```\n",
    ],
)
def test_control_a_block_that_fails_is_noticed(text, reader):
    with pytest.raises((AssertionError, ImportError)):
        reader.read(text)


def test_every_block_is_run_or_is_listed_with_a_reason():
    for page, text in texts().items():
        assert {block.language for block in blocks(text)} <= {"sh", "python", "json", "text"}, page
        for block in blocks(text):
            if block.language != "sh":
                continue
            for command in commands(block.code):
                ours = re.match(r"(echo .*\| |[A-Z_]+=\S+ )?python -m keras_transformer\.", command)
                assert ours or command.startswith("curl ") or reason_not_to_run(command), command


@pytest.mark.parametrize("table", [NOT_RUN, SMALLER])
def test_every_entry_of_the_tables_is_used(table):
    code = "".join(block.code for text in texts().values() for block in blocks(text))
    assert [entry for entry in table if entry not in code] == []


def test_most_pieces_of_the_pages_are_run():
    every_piece = [piece for text in texts().values() for piece in pieces(text)]
    assert sum(not reason_not_to_run(piece) for piece in every_piece) > 2 / 3 * len(every_piece)
