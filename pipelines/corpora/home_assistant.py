"""Default corpus: the interface texts of Home Assistant (Apache-2.0), in English and in human
translations into 53 languages that have enough text.

pip downloads their PyPI wheel `homeassistant` once into the user's cache folder. This project holds
no copy of them.
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

    The wheel (68 MB) is downloaded if the cache folder has none or a broken one. No English
    sentence is in two splits.
    """

    markup: str = option(
        "dropped",
        "What to do with pairs that have markup such as {name}, <b> or a link; alone keeps only "
        "these. Default: kept with --protect, else dropped.",
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
        for english, translation in pairs:
            pair = (english, translation) if english_first else (translation, english)
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
    """Align the English and the translated document, nested objects of strings, of each component
    by key path. Return the distinct pairs (English, translation) worth learning from, and reason ->
    number of pairs dropped. For `markup` see `HomeAssistant`.
    """
    pairs: dict[tuple[str, str], None] = {}
    dropped: collections.Counter[str] = collections.Counter()
    for english_document, translated_document in documents:
        translations = dict(_leaves(translated_document))
        for path, english in _leaves(english_document):
            if path not in translations:
                continue
            pair = (english.strip(), translations[path].strip())
            if reason := _objection(*pair, markup):
                dropped[reason] += 1
            elif pair in pairs:
                dropped["duplicate"] += 1
            else:
                pairs[pair] = None
    return list(pairs), dict(dropped)


def _objection(english, translation, markup):
    if not english or not translation:
        return "empty"
    if english == translation:
        return "untranslated"
    has_markup = bool(MARKUP.search(english) or MARKUP.search(translation))
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
    pattern = re.compile(TRANSLATION.format(language=f"(en|{re.escape(language)})"))
    with _archive(wheel) as archive:
        names = archive.namelist()
        texts = {name: archive.read(name) for name in names if pattern.fullmatch(name)}
    aligned = [
        (name.replace(f"/{language}.json", "/en.json"), name)
        for name in sorted(texts)
        if name.endswith(f"/{language}.json")
    ]
    if not aligned:
        pattern = re.compile(TRANSLATION.format(language="(.+)"))
        languages = sorted({match[1] for match in map(pattern.fullmatch, names) if match} - {"en"})
        raise ValueError(
            f"Corpus home_assistant has no language {language!r}. Besides en it has: "
            f"{', '.join(languages)}."
        )
    return [
        (json.loads(texts[english]), json.loads(texts[translated]))
        for english, translated in aligned
        if english in texts
    ]


@contextlib.contextmanager
def _archive(wheel: Path) -> Iterator[zipfile.ZipFile]:
    """Open a wheel and check its table of contents. zipfile checks the CRC of each member read.

    Any error in the block counts as a broken wheel: only read in it, and parse outside.
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
        capture = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
        finished = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, **capture)
        if finished.returncode != 0:
            raise OSError(f"{failure} {_reason_of_failure(finished)}. {remedy}")
        download = folder / WHEEL
        if not download.exists():
            raise OSError(f"{failure} pip downloaded no {WHEEL}. {remedy}")
        try:
            with _archive(download) as archive:
                if damaged := archive.testzip():
                    raise zipfile.BadZipFile(f"bad CRC of {damaged}")
        except BrokenWheelError as error:
            raise OSError(f"{failure} the file is broken ({error.__cause__}). {remedy}") from error
        write_whole(wheel, download.replace)


def _reason_of_failure(finished: subprocess.CompletedProcess) -> str:
    if "No module named pip" in finished.stderr:
        return f"{sys.executable} has no pip (python -m ensurepip installs it)"
    lines = [line.strip() for line in finished.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    message = (errors or lines or [f"nothing, exit status {finished.returncode}"])[-1]
    return f"pip said: {message.rstrip('.')} (is the package index reachable?)"
