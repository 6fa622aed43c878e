"""Default corpus: the interface texts of Home Assistant (Apache-2.0), human translations of English
in 53 languages with enough text.

They lie in the PyPI wheel `homeassistant`, which pip downloads once into the user's cache folder;
nothing of it is copied into this project.
"""

import collections
import contextlib
import csv
import io
import json
import logging
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pipelines.corpora.options import Downloaded, Target, cache_folder
from pipelines.corpora.parallel_text import Corpus, ParallelText, split_of
from pipelines.options import option
from pipelines.whole_files import folder_beside, write_whole

RELEASE = "2026.11.0"
WHEEL = f"homeassistant-{RELEASE}-py3-none-any.whl"
RECORD = f"homeassistant-{RELEASE}.dist-info/RECORD"
TRANSLATION = r"homeassistant/components/[^/]+/translations/{language}\.json"
MARKUP = re.compile(r"[{}<>`\n]|\]\(|https?://|www\.|\*\*|\[%")
PIP = [
    *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
    *("--only-binary=:all:", "--python-version", "3.13"),
]

logger = logging.getLogger(__name__)


class BrokenWheelError(OSError):
    """A wheel that is truncated or damaged."""


class HomeAssistant(Target, Downloaded, name="home_assistant"):
    """Interface texts of Home Assistant, English and another language.

    The wheel (68 MB) is downloaded if the cache folder lacks it or holds a broken one. No English
    sentence stands in two splits.
    """

    markup: str = option(
        "dropped",
        "What becomes of pairs with markup such as {name}, <b> or a link; alone: only they are "
        "kept. Default: kept with --protect, else dropped.",
        choices=("dropped", "kept", "alone"),
        is_unset=True,
    )

    def load(self):
        languages = (self.source_language, self.target_language)
        if languages.count("en") != 1:
            raise ValueError(
                "Corpus home_assistant pairs English with another language: one of "
                "`source_language` and `target_language` must be 'en'. Received: "
                f"source_language={languages[0]!r}, target_language={languages[1]!r}. Try 'en' and "
                "'de'."
            )
        english_first = languages[0] == "en"
        language = languages[english_first]
        folder = Path(self.cache_dir).expanduser() if self.cache_dir else cache_folder()
        pairs, dropped = select_pairs(_read_or_download(folder / WHEEL, language), self.markup)
        splits: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
        for english, other in pairs:
            pair = (english, other) if english_first else (other, english)
            splits[split_of(english)].append(pair)
        if not all(splits.values()):
            sizes = ", ".join(f"{name} {len(split)}" for name, split in splits.items())
            raise ValueError(
                f"Corpus home_assistant has too little of {language!r}: {len(pairs)} usable "
                f"pair(s) ({sizes}), and no split may be empty. Choose another language."
            )
        texts = {name: ParallelText.from_pairs(split) for name, split in splits.items()}
        return Corpus(self.name, *languages, **texts, dropped=dropped)


def select_pairs(
    documents: list[tuple[dict, dict]], markup: str = "dropped"
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Align the documents of components, nested objects of strings, by key path: the pairs
    (English, other) worth learning from, each once, and reason -> number of pairs dropped for it.
    Of `markup` see `HomeAssistant`.
    """
    pairs: dict[tuple[str, str], None] = {}
    dropped: collections.Counter[str] = collections.Counter()
    for english_document, other_document in documents:
        others = dict(_leaves(other_document))
        for path, english in _leaves(english_document):
            if path not in others:
                continue
            pair = (english.strip(), others[path].strip())
            if reason := _objection(*pair, markup):
                dropped[reason] += 1
            elif pair in pairs:
                dropped["duplicate"] += 1
            else:
                pairs[pair] = None
    return list(pairs), dict(dropped)


def _objection(english, other, markup):
    if not english or not other:
        return "empty"
    if english == other:
        return "untranslated"
    has_markup = bool(MARKUP.search(english) or MARKUP.search(other))
    unwanted = {"dropped": has_markup, "kept": False, "alone": not has_markup}
    return ("markup" if has_markup else "no markup") if unwanted[markup] else None


def _leaves(document: dict, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        elif isinstance(value, str):
            yield (*path, key), value


def _read_or_download(wheel: Path, language: str) -> list[tuple[dict, dict]]:
    try:
        return _read(wheel, language)
    except FileNotFoundError:
        logger.info("Downloading homeassistant==%s (68 MB, once) to %s", RELEASE, wheel)
    except BrokenWheelError as error:
        logger.warning("%s Downloading it again.", error)
    _download(wheel)
    return _read(wheel, language)


def _read(wheel: Path, language: str) -> list[tuple[dict, dict]]:
    wanted = re.compile(TRANSLATION.format(language=f"(en|{re.escape(language)})"))
    with _archive(wheel) as archive:
        names = archive.namelist()
        texts = {name: archive.read(name) for name in names if wanted.fullmatch(name)}
    aligned = [
        (name.replace(f"/{language}.json", "/en.json"), name)
        for name in sorted(texts)
        if name.endswith(f"/{language}.json")
    ]
    if not aligned:
        anyone = re.compile(TRANSLATION.format(language="(.+)"))
        languages = sorted({match[1] for match in map(anyone.fullmatch, names) if match} - {"en"})
        raise ValueError(
            f"Corpus home_assistant has no language {language!r}. Besides en it has: "
            f"{', '.join(languages)}."
        )
    return [
        (json.loads(texts[english]), json.loads(texts[other]))
        for english, other in aligned
        if english in texts
    ]


@contextlib.contextmanager
def _archive(wheel: Path) -> Iterator[zipfile.ZipFile]:
    """Open a wheel whose table of contents is whole. zipfile checks the CRC of each member read.

    All errors inside the block count as a broken wheel, so only read in it, and interpret outside.
    """
    with open(wheel, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                rows = csv.reader(io.StringIO(archive.read(RECORD).decode("utf-8")))
                if {row[0] for row in rows} != set(archive.namelist()):
                    raise zipfile.BadZipFile("its members are not those that its RECORD lists")
                yield archive
        except Exception as error:  # Damaged bytes make zipfile raise a dozen unrelated types.
            raise BrokenWheelError(f"{wheel} is broken: {' '.join(str(error).split())}.") from error


def _download(wheel: Path) -> None:
    failure = f"Could not download homeassistant=={RELEASE}:"
    remedy = (
        "Train on your own text with --corpus=text_files --data_dir=FOLDER, or put the "
        f"wheel at {wheel}."
    )
    with folder_beside(wheel) as folder:
        command = [*PIP, "--ignore-requires-python", f"homeassistant=={RELEASE}", "-d", folder]
        read = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
        answer = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, **read)
        if answer.returncode != 0:
            raise OSError(f"{failure} {_complaint(answer)}. {remedy}")
        download = folder / WHEEL
        if not download.exists():
            raise OSError(f"{failure} pip brought no {WHEEL}. {remedy}")
        try:
            with _archive(download) as archive:
                if damaged := archive.testzip():
                    raise zipfile.BadZipFile(f"bad CRC of {damaged}")
        except BrokenWheelError as error:
            raise OSError(f"{failure} what came is broken ({error.__cause__}). {remedy}") from error
        write_whole(wheel, download.replace)


def _complaint(answer: subprocess.CompletedProcess) -> str:
    if "No module named pip" in answer.stderr:
        return f"{sys.executable} has no pip (python -m ensurepip installs it)"
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    said = (errors or lines or [f"nothing, exit status {answer.returncode}"])[-1]
    return f"pip said: {said.rstrip('.')} (is the package index reachable?)"
