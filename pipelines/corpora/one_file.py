"""The user's own pairs in one file: two columns of a table, or a translation memory. Where no files
are named to validate and to test on, a pair's split is decided by its source alone.
"""

import abc
import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

from pipelines.corpora.options import Strictness, Target
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection, split_of
from pipelines.dropped import Dropped
from pipelines.line_files import DAMAGED_GZIP, byte_lines, decode, open_bytes
from pipelines.options import option

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class OneFile(Target, Strictness):
    """Pairs of a file. One that came before, with an empty or a huge side or without is dropped."""

    data_file: str | None = option(None, "File of the pairs, gzipped or not.", path=True)
    valid_file: str | None = option(
        None,
        "File of the pairs to validate on. Default: 3 % of --data_file, chosen by the source.",
        path=True,
    )
    test_file: str | None = option(
        None, "File of the pairs to test on. Default: another 3 % of --data_file.", path=True
    )

    @abc.abstractmethod
    def pairs(self, path: str, dropped: Dropped) -> Iterator[tuple[int, str, str]]:
        """The number, the source and the target of each pair of a file, stripped."""

    # What is numbered.
    unit = "line"

    def load(self):
        languages = self.two_languages()
        dropped = Dropped(strict=self.strict)
        whole = self.require("data_file", "a file of pairs")
        # The training side last: what is validated or tested on is not trained on.
        files = {"valid": self.valid_file, "test": self.test_file, "train": whole}
        found: dict[str, list[Any]] = {"train": [], "valid": [], "test": []}
        seen = set()
        for split, path in files.items():
            if not path:
                continue
            if split != "train" and os.path.samefile(path, whole):
                raise ValueError(
                    f"`{split}_file` must be another file than `data_file`, whose pairs are "
                    f"trained on. Received: {path}. Leave it out: 3 % of them are kept for it."
                )
            if split == "test" and files["valid"] and os.path.samefile(path, files["valid"]):
                found["test"] = found["valid"]
                continue
            for number, *pair in self.pairs(path, dropped):
                by_source = split_of(pair[0])
                home = by_source if split == "train" and not files[by_source] else split
                if reason := objection(*pair):
                    dropped.leave_out(reason, f"{path}, {self.unit} {number}")
                elif tuple(pair) in seen:
                    dropped.count("duplicate", f"{path}, {self.unit} {number}")
                else:
                    seen.add(tuple(pair))
                    found[home].append((number, *pair))
        for split, rows in found.items():
            if not rows:
                raise ValueError(
                    f"no usable pair is left for the {split} split of {whole} (dropped: "
                    f"{dropped.describe()}). Add pairs, or name --valid_file and --test_file."
                )
        texts = {
            split: ParallelText.from_rows(rows, str(files[split] or whole), self.unit)
            for split, rows in found.items()
        }
        return Corpus(self.name, *languages, **texts, dropped=dropped)


class Tsv(OneFile, name="tsv"):
    """Columns parted by tabs; quotes are text."""

    source_column: str = option(
        "1", "Column of the sources: its number, from 1, or its name in the first line."
    )
    target_column: str = option("2", "Column of the targets, by its number or name.")

    def pairs(self, path, dropped):
        columns = (self.source_column, self.target_column)
        if len({int(one) if one.isdecimal() else one for one in columns}) == 1:
            raise ValueError(
                f"`source_column` and `target_column` are both {columns[0]}. Name two."
            )
        named = not all(column.isdecimal() and int(column) for column in columns)
        with open_bytes(path) as file:
            lines = enumerate(byte_lines(file, path, are_several=True), start=1)
            rows = ((n, [decode(one, path, n) for one in line.split(b"\t")]) for n, line in lines)
            places = _places(columns, next(rows, (1, []))[1], path) if named else columns
            places = [int(place) - 1 for place in places]
            for number, row in rows:
                if len(row) <= max(places):
                    dropped.leave_out("with too few columns between tabs", f"{path}, line {number}")
                else:
                    yield number, *(row[place] for place in places)


class Tmx(OneFile, name="tmx"):
    """A translation memory (TMX 1.4). A language such as `de` takes the segments of `de-AT`, and
    `de-AT` those of `de`, where there are none of its own. Inline codes stay, line breaks do not.
    """

    unit = "unit"

    def pairs(self, path, dropped):
        for number, unit in enumerate(_units(path), start=1):
            segments = _segments(unit)
            sides = [_found(segments, one) for one in self.two_languages()]
            unit.clear()
            if None in sides or sides[0] == sides[1]:
                dropped.leave_out("without one of the languages", f"{path}, unit {number}")
            else:
                yield number, *map(segments.get, sides)


def _units(path):
    try:
        with open_bytes(path) as file:
            for _, node in ElementTree.iterparse(file):
                if node.tag.rpartition("}")[2] == "tu":
                    yield node
    # Of an encoding that expat does not read: ValueError, LookupError.
    except (ElementTree.ParseError, ValueError, LookupError, *DAMAGED_GZIP) as error:
        raise ValueError(
            f"{path} is no translation memory, or is damaged: {error}. Export it again, in UTF-8."
        ) from error


def _places(columns, header, path):
    """The numbers of named columns, from 1."""
    names = [name.strip() for name in header]
    for column in columns:
        if names.count(column) != 1:
            raise ValueError(
                "`source_column` and `target_column` must be numbers from 1, or in the first line "
                f"of {path} once: {', '.join(names)}. Received: {' and '.join(columns)}."
            )
    return [names.index(column) + 1 for column in columns]


def _segments(unit):
    """The text of each language of a unit, by its code in lower case."""
    found = {}
    for variant in unit:
        language = variant.get(LANGUAGE) or variant.get("lang") or ""
        for node in variant.findall("{*}seg"):
            text = re.sub(r"\s*\n\s*", " ", "".join(node.itertext()).strip())
            found.setdefault(language.lower().replace("_", "-"), text)
    return found


def _found(segments, language):
    """A language, one of its regions, or the language of its region, whichever has a segment."""
    asked = language.lower().replace("_", "-")
    main = asked.partition("-")[0]
    regional = [one for one in segments if one.partition("-")[0] == main]
    return next((one for one in (asked, main, *sorted(regional)) if one in segments), None)
