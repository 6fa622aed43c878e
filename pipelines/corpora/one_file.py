"""The user's own pairs in one file: two columns of a table, or a translation memory. Without files
for validation and test, a pair's source alone decides its split.
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
    """Pairs of a file. Duplicates, and pairs with an empty, huge or missing side, are dropped."""

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
        """Yield the number, the source and the target of each pair of a file, stripped."""

    # What the numbers count.
    unit = "line"

    def load(self):
        languages = self.two_languages()
        dropped = Dropped(strict=self.strict)
        whole = self.require("data_file", "a file of pairs")
        # The training side comes last, and drops the pairs of the other splits as duplicates.
        files = {"valid": self.valid_file, "test": self.test_file, "train": whole}
        splits: dict[str, list[Any]] = {"train": [], "valid": [], "test": []}
        pairs_so_far = set()
        for split, path in files.items():
            if not path:
                continue
            if split != "train" and os.path.samefile(path, whole):
                raise ValueError(
                    f"`{split}_file` must be another file than `data_file`, whose pairs are "
                    f"trained on. Received: {path}. Leave it out: 3 % of them are kept for it."
                )
            if split == "test" and files["valid"] and os.path.samefile(path, files["valid"]):
                splits["test"] = splits["valid"]
                continue
            for number, *pair in self.pairs(path, dropped):
                by_source = split_of(pair[0])
                home = by_source if split == "train" and not files[by_source] else split
                if reason := objection(*pair):
                    dropped.leave_out(reason, f"{path}, {self.unit} {number}")
                elif tuple(pair) in pairs_so_far:
                    dropped.count("duplicate", f"{path}, {self.unit} {number}")
                else:
                    pairs_so_far.add(tuple(pair))
                    splits[home].append((number, *pair))
        for split, rows in splits.items():
            if not rows:
                raise ValueError(
                    f"no usable pair is left for the {split} split of {whole} (dropped: "
                    f"{dropped.describe()}). Add pairs, or name --valid_file and --test_file."
                )
        texts = {
            split: ParallelText.from_rows(rows, str(files[split] or whole), self.unit)
            for split, rows in splits.items()
        }
        return Corpus(self.name, *languages, **texts, dropped=dropped)


class Tsv(OneFile, name="tsv"):
    """Columns separated by tabs; quotation marks are text."""

    source_column: str = option(
        "1", "Column of the sources: its number, from 1, or its name in the first line."
    )
    target_column: str = option("2", "Column of the targets, by number or name as --source_column.")

    def pairs(self, path, dropped):
        columns = (self.source_column, self.target_column)
        if len({int(column) if column.isdecimal() else column for column in columns}) == 1:
            raise ValueError(
                f"`source_column` and `target_column` are both {columns[0]}. Name two."
            )
        are_named = not all(column.isdecimal() and int(column) for column in columns)
        with open_bytes(path) as file:
            lines = enumerate(byte_lines(file, path, are_several=True), start=1)
            rows = ((n, [decode(cell, path, n) for cell in line.split(b"\t")]) for n, line in lines)
            places = _places(columns, next(rows, (1, []))[1], path) if are_named else columns
            places = [int(place) - 1 for place in places]
            for number, row in rows:
                if len(row) <= max(places):
                    dropped.leave_out("with too few columns between tabs", f"{path}, line {number}")
                else:
                    yield number, *(row[place] for place in places)


class Tmx(OneFile, name="tmx"):
    """A translation memory (TMX 1.4). If a language has no segments, `de` takes those of `de-AT`,
    and `de-AT` those of `de`. The text of inline codes stays, line breaks become spaces.
    """

    unit = "unit"

    def pairs(self, path, dropped):
        for number, unit in enumerate(_units(path), start=1):
            segments = _segments(unit)
            sides = [_matching_code(segments, language) for language in self.two_languages()]
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
    # An encoding that expat cannot read is a ValueError or LookupError.
    except (ElementTree.ParseError, ValueError, LookupError, *DAMAGED_GZIP) as error:
        raise ValueError(
            f"{path} is no translation memory, or is damaged: {error}. Export it again, in UTF-8."
        ) from error


def _places(columns, header, path):
    """Return the numbers of named columns, from 1."""
    names = [name.strip() for name in header]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    for column in columns:
        if names.count(column) != 1:
            raise ValueError(
                "`source_column` and `target_column` must both be numbers from 1, or both be in "
                f"the first line of {path} once: {', '.join(names[:20])}{more}. Received: "
                f"{' and '.join(columns)}."
            )
    return [names.index(column) + 1 for column in columns]


def _segments(unit):
    """Return the text of each language of a unit, by its code in lower case."""
    texts = {}
    for variant in unit:
        language = variant.get(LANGUAGE) or variant.get("lang") or ""
        for node in variant.findall("{*}seg"):
            text = re.sub(r"\s*\n\s*", " ", "".join(node.itertext()).strip())
            texts.setdefault(language.lower().replace("_", "-"), text)
    return texts


def _matching_code(segments, language):
    """Return the best code with a segment: the language, without its region, or with another."""
    code = language.lower().replace("_", "-")
    main = code.partition("-")[0]
    candidates = (code, main, *sorted(key for key in segments if key.partition("-")[0] == main))
    return next((candidate for candidate in candidates if candidate in segments), None)
