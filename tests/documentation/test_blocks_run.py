"""Each block of README and docs/ runs at toy size, in the order of its page, unless
`NOT_RUN` has a reason not to run it.
"""

import contextlib
import importlib.util
import json
import pathlib
import random
import re
import shutil
import urllib.request

import numpy as np
import pytest
import tensorflow_datasets
import written
from documentation.pages import PAGES, blocks, commands, words
from shell import Shell
from written import write_png

# TFDS calls what protobuf 6 deprecates whenever it reads the metadata of a set.
pytestmark = pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
RUN = "runs/home_assistant_en_de"
# A flag file is looked up in the working folder first, so that these take the place of the
# package's own: 20 steps on words to reverse.
TINY_FLAGS = """
--flagfile=toy.flags
--mixed_precision=float32
--source_language=en
--target_language=de
--max_steps=20
--validation_sentences=10
--protect=placeholders,tags,urls,emails,numbers
--norelease
"""
SMALL = """
--num_layers=1
--d_model=32
--d_ff=64
--num_heads=2
--max_steps=20
--norelease
"""
OF_TRANSLATORS = f"{SMALL}--vocabulary_size=400\n--validation_sentences=2\n"
# Likewise, on sets of TFDS, on the treebank of the tests, and on the text of `write_files`.
SETS = {
    "wmt14_translate/de-en": ("de", "en"),
    "wmt14_translate/fr-en": ("fr", "en"),
    "ted_hrlr_translate/pt_to_en": ("pt", "en"),
}
OF_WMT = f"--corpus=tfds\n--data_dir=my_sets\n--source_language=en{OF_TRANSLATORS}"
FLAG_FILES = {
    "tiny.flags": TINY_FLAGS,
    "base.flags": f"--dataset=wmt14_translate/de-en\n--target_language=de\n{OF_WMT}",
    "base_en_fr.flags": f"--dataset=wmt14_translate/fr-en\n--target_language=fr\n{OF_WMT}",
    "parsing_small.flags": f"--task=parsing\n--corpus=treebank{OF_TRANSLATORS}",
    "gpt.flags": f"--task=language_modelling{SMALL}--vocabulary_size=290\n",
    "bert.flags": f"--task=masking{SMALL}--vocabulary_size=290\n",
    "bert_intents.flags": f"--task=classification\n--corpus=intents{SMALL}--vocabulary_size=290\n",
    "bert_slots.flags": "--task=tagging\n--corpus=intents\n--target_language=slots"
    f"{SMALL}--vocabulary_size=290\n",
    "vit.flags": f"--task=image_classification\n--patch_size=2{SMALL}",
    "t5.flags": f"--corpus=mixture\n--norm=pre_rms\n--positions=relative{OF_TRANSLATORS}",
}
TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
# Text of the pages, and its replacement.
SMALLER = {
    '"home_assistant"': '"reverse"',  # A corpus that nobody has to download.
    "--corpus=tfds": "--corpus=tfds --data_dir=my_sets",
    "size=8000": "size=300",  # The vocabulary's.
    "num_layers=3, d_model=256, d_ff=1024": "num_layers=1, d_model=32, d_ff=64",
    "TransformerSchedule(256)": "TransformerSchedule(32)",
    "batches.updates_per_epoch, epochs=10": "3, epochs=1",
    "--layer=3": "--layer=1",
    # Our own server answers in place of TF Serving.
    "localhost:8501/v1/models/bert": "127.0.0.1:8501/v1/models/bert",
    "localhost:8501/v1/models/lines_en": "127.0.0.1:8501/v1/models/lines_en",
    "localhost:8501/v1/models/parsing_en": "127.0.0.1:8501/v1/models/parsing_en",
    "localhost:8501/v1/models/translator": "127.0.0.1:8501/v1/models/home_assistant_en_de",
}
NOT_RUN = {
    "make ": "installs, or takes long; tests/documentation checks that the target exists",
    "pip install": "needs a package index; tests/documentation checks that the extra exists",
    "--beam_options=": "needs a cluster",
    "export TF_CONFIG=": "needs two machines; see tests/integration/test_replicas.py",
    "--distribution=multi_worker": "needs two machines; see tests/integration/test_replicas.py",
    "--distribution=tpu": "needs a TPU; see docs/replicas.md, What was tested",
    "--format=web": "needs npm's registry; see tests/inference/test_web_page.py",
    "http.server": "serves until it is stopped; see tests/inference/test_web_page.py",
    "docker run": "needs Docker and TF Serving",
    "hugging_face.load(": "needs the weights of another package; see tests/imports",
    "import_model --from": "needs the weights of another package; see tests/imports",
    "--model=runs/flan_t5": "needs the weights of another package; see tests/imports",
    "--model=runs/opus_en_de": "needs the weights of another package; see tests/imports",
    "--model=runs/gpt2": "needs the weights of another package; see tests/imports",
    "--model=runs/nllb": "needs the weights of another package; see tests/imports",
    "models/nllb:predict": "needs the weights of another package; see tests/imports",
    "saved_models/opus_": "needs the weights of another package; see tests/imports",
    "--init_from=runs/opus_en_de": "needs the weights of another package; see tests/imports",
    "import grpc": "needs a server; tests/saved_models/test_session.py brings one and runs it",
}
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


def reason_not_to_run(code: str) -> str | None:
    """Why a command, or a Python block, is not run; None if it is."""
    return next((reason for part, reason in NOT_RUN.items() if part in code), None)


def smaller(code: str) -> str:
    """Replace the sizes of a block by toy sizes."""
    for big, small in SMALLER.items():
        code = code.replace(big, small)
    return code


def write_files(folder: pathlib.Path) -> None:
    """Write the files that the pages assume: flag files, and reversed words in place of English and
    German.
    """
    for name, text in FLAG_FILES.items():
        (folder / name).write_text(text)
    shutil.copytree(TREEBANK, folder / "my_trees")
    draw = random.Random(1)
    for corpus in ("my_text", "my_lines", "news"):
        (folder / corpus).mkdir()
        for split, count in (("train", 2000), ("valid", 20), ("test", 20)):
            lines = [" ".join(draw.choices("abcdefghijklmnopqrst", k=6)) for _ in range(count)]
            _write(folder / corpus / f"{split}.en", lines)
            _write(folder / corpus / f"{split}.de", [line[::-1] for line in lines])
    _write(folder / "news" / "more.de", lines)
    for dataset, languages in SETS.items():
        _write_set(folder / "my_sets", dataset, languages, draw)
    (folder / "my_topics").mkdir()
    for split in ("train", "valid", "test"):
        _write(folder / "my_topics" / f"{split}.en", ["a b c", "d e f"])
        _write(folder / "my_topics" / f"{split}.topic", ["early", "late"])
    _write_pictures(folder / "my_pictures")
    _write(folder / "lines.en", ["a b c d", "e f g"])
    _write(folder / "terms.tsv", ["a\tz", "b c\tb c"])
    _write(folder / "page.html", ["<p>a b <b>c</b></p>", "<p>d e</p>"])
    _write(folder / "other.txt", ["a b c", "h i"])
    _write(folder / "references.de", ["d c b a", "g f e"])
    _write(folder / "beginnings.de", ["d", ""])
    _write(folder / "raw.txt", ["Anna sings .", "A dog reads ( it )"])
    _write(folder / "sentences.trees", ["(S (NP (N a) (N b)) (V c))", "(S (N d) (V e))"])


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_set(folder, dataset, languages, draw):
    """A set of TFDS' catalogue, whose sentences are words and the same words reversed."""
    splits = {}
    for split, count in (("train", 500), ("validation", 20), ("test", 20)):
        lines = [" ".join(draw.choices("abcdefghijklmnopqrst", k=6)) for _ in range(count)]
        splits[split] = [dict(zip(languages, (line, line[::-1]), strict=True)) for line in lines]
    tensorflow_datasets.disable_progress_bar()
    written.prepare(dataset, folder, splits)


def _write_pictures(folder):
    """Twelve bright pictures and twelve dark ones, of 4 x 4 pixels."""
    draw = np.random.default_rng(1)
    for name, least in (("bright", 128), ("dark", 0)):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            pixels = draw.integers(least, least + 128, (4, 4, 1), np.uint8)
            write_png(folder / name / f"{number}.png", pixels)


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
