"""The page of `export --format=web`, which translates in a browser with the ONNX graphs beside it.

ONNX Runtime and SentencePiece for browsers come from npm, downloaded once and checked by checksum.
"""

import base64
import dataclasses
import hashlib
import html
import logging
import pathlib
import subprocess
import tarfile
import time
from collections.abc import Mapping

from keras_transformer.decoding.lengths import parse_length
from keras_transformer.decoding.numpy_search import beam_and_penalty
from keras_transformer.decoding.remembered_options import LANGUAGES
from keras_transformer.inference.text_module import TextModule
from pipelines import vocabularies
from pipelines.corpora.options import cache_folder
from pipelines.vocabularies.casing import settings as casing_settings
from pipelines.vocabularies.protected_spans import MARKS
from pipelines.whole_files import folder_beside, write_json, write_whole

PAGE = pathlib.Path(__file__).with_name("web")
STYLE = PAGE.parents[1] / "server" / "page" / "page.css"
REMARK = (
    "`index.html` translates with the same files in a browser: `python -m http.server 8000 "
    "--directory=FOLDER`,\nand open http://localhost:8000/. `runtime` has {}.\n"
)
# The options that the page cannot change, with their only values; and those that it reads as is.
FIXED_OPTIONS = {"samples": 0, "num_hypotheses": 1, "blockwise": False}
PASSED_OPTIONS = (
    *("length_penalty_form", "beam_form", "barred", "protect_all", *LANGUAGES),
    *("no_repeat_ngram_size", "repetition_penalty"),
)

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Package:
    """A package of npm: its checksum as npm writes it, and its files with their names here."""

    name: str
    version: str
    license: str
    integrity: str
    files: Mapping[str, str]

    def __str__(self):
        return f"{self.name}@{self.version}"

    @property
    def path(self) -> pathlib.Path:
        """Its file in the user's cache folder."""
        name = self.name.removeprefix("@").replace("/", "-")
        return cache_folder() / f"{name}-{self.version}.tgz"


RUNTIME = "ort-wasm-simd-threaded"
PACKAGES = (
    Package(
        "onnxruntime-web",
        "1.30.0",
        "MIT",
        "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAf"
        "KYQ==",
        {f"dist/{name}": name for name in ("ort.wasm.min.js", f"{RUNTIME}.mjs", f"{RUNTIME}.wasm")},
    ),
    Package(
        "@agnai/sentencepiece-js",
        "1.1.1",
        "Apache-2.0",
        "sha512-h2+XPrJVLuVLl+2+3iZPWcTw6Fs2NNulnxyh7LoI1hzHHib1wDC6KTmTrDJlLq7/lr5QFYpeMz2rlTFQrS0"
        "C0g==",
        {"dist/index.js": "sentencepiece.js", "LICENSE": "sentencepiece.LICENSE"},
    ),
)


def prepare(module: TextModule) -> None:
    """Refuse what the page cannot do, and download the packages that are missing."""
    if module.output != "translation":
        raise ValueError(
            "--format=web is for translators. Received: a language model. Export it by "
            "--format=onnx."
        )
    for name, value in FIXED_OPTIONS.items():
        if (received := getattr(module.options, name)) != value:
            raise ValueError(
                f"the page of --format=web searches without it: {name}={received}. Leave it out, "
                "or export by --format=onnx."
            )
    if module.marks and module.vocabulary.protected.protect_pattern:
        raise ValueError(
            "a browser may read the regular expression of --protect_pattern otherwise. Received: "
            f"{module.vocabulary.protected.protect_pattern}. Export the run by --format=onnx."
        )
    for package in PACKAGES:
        if not package.path.exists():
            logger.info("Downloading %s (once) to %s", package, package.path)
            _download(package)
        elif not _is_whole(package.path, package):
            logger.warning("%s is broken. Downloading it again.", package.path)
            _download(package)


def write(folder: pathlib.Path, module: TextModule, title: str, size: int) -> None:
    """Write the page of a translator, whose graphs have `size` bytes, and all that it loads."""
    write_json(folder / "web.json", settings(module) | {"title": title, "exported": time.time_ns()})
    runtime = folder / "runtime"
    runtime.mkdir()
    for package in PACKAGES:
        with tarfile.open(package.path) as archive:
            for name, target in package.files.items():
                (runtime / target).write_bytes(archive.extractfile(f"package/{name}").read())
    for script in PAGE.glob("*.js"):
        (folder / script.name).write_bytes(script.read_bytes())
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    # Before the title, in which a user may write anything.
    page = page.replace("{{style}}", STYLE.read_text(encoding="utf-8"))
    page = page.replace("{{size}}", f"{size / 1e6:.0f} MB").replace("{{title}}", html.escape(title))
    (folder / "index.html").write_text(page, encoding="utf-8")


def facts() -> dict[str, dict[str, str]]:
    """Return what the card says of the packages."""
    return {npm.name: {"version": npm.version, "integrity": npm.integrity} for npm in PACKAGES}


def remark() -> str:
    """Return what the README says of the page."""
    return REMARK.format(", ".join(f"{package} ({package.license})" for package in PACKAGES))


def settings(module: TextModule) -> dict:
    """Return the settings of the page's search."""
    options = module.options
    vocabulary = module.vocabulary
    protected = vocabulary.protected
    sides = {"source": vocabulary.source, "target": vocabulary.target}
    lengths = {}
    for name in ("min_length", "max_length"):
        relative, more = parse_length(name, getattr(options, name))
        lengths[name] = [relative.numerator, relative.denominator, more]
    return {
        **dict(zip(("beam_size", "length_penalty"), beam_and_penalty(options), strict=True)),
        **{name: getattr(options, name) for name in PASSED_OPTIONS},
        "pieces": vocabulary.size,
        "labels": module.labels and module.labels.ids,
        "forbidden": module.forbidden and _automaton(module.forbidden),
        "learned_terms": bool(protected and protected.glossary_rate),
        "puts_terms_in": bool(protected and protected.puts_terms_in),
        "vocabularies": vocabularies.FILES[vocabulary.kind],
        "marks": protected
        and {
            "expression": protected.expression,
            "casing": protected.truecase and casing_settings(protected.cased_words),
            **{name: [*map(side.pieces.index, MARKS)] for name, side in sides.items()},
        },
        **lengths,
    }


def _automaton(forbidden):
    """Return the state after each piece, -1 if barred: from the first, and where others differ."""
    # A barred piece leads to state 0.
    after = forbidden.following - forbidden.is_barred
    changed = [{str(n): int(row[n]) for n in (row != after[0]).nonzero()[0]} for row in after]
    return {"first": after[0].tolist(), "changed": changed}


def _download(package):
    failure = f"could not download {package}:"
    remedy = f"Put the file that `npm pack {package}` makes at {package.path}."
    with folder_beside(package.path) as folder:
        command = ["npm", "pack", str(package), f"--pack-destination={folder}", "--loglevel=error"]
        try:
            answer = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
        except FileNotFoundError as error:
            raise OSError(f"{failure} there is no npm here. Install it. {remedy}") from error
        if answer.returncode != 0:
            # The first line is the error's code, the others are npm's traceback.
            code = answer.stderr.partition("\n")[0].removeprefix("npm error ")
            raise OSError(f"{failure} npm said: {code} (is its registry reachable?). {remedy}")
        download = folder / package.path.name
        if not (download.exists() and _is_whole(download, package)):
            raise OSError(f"{failure} its checksum is not {package.integrity}. {remedy}")
        write_whole(package.path, download.replace)


def _is_whole(path, package):
    digest = hashlib.sha512(path.read_bytes()).digest()
    return package.integrity == f"sha512-{base64.b64encode(digest).decode()}"
