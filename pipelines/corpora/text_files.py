"""The user's own text: `<data_dir>/<prefix>.<language>[.gz]`, one sentence a line. In two languages
line N of one file translates line N of the other; in one, each line stands for itself.
"""

import itertools

from pipelines.corpora.options import PREFIXES, Files, Streamed
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection
from pipelines.dropped import Dropped
from pipelines.line_files import byte_lines, decode, locate, open_bytes, read_lines, unequal

WHAT = "the folder with the text files"


class TextFiles(Streamed, Files, name="text_files"):
    """Text files of two languages.

    A pair with an empty side, or with a line over 100,000 characters, is dropped and counted.
    """

    def rows(self, split, dropped, part=0, parts=1):
        prefix = self.prefixes[split]
        if prefix is None:
            return iter(()), "", "line"
        folder = self.folder(WHAT)
        self.two_languages()
        paths = [
            locate(folder, f"{prefix}.{getattr(self, side)}", side, PREFIXES[split])
            for side in ("source_language", "target_language")
        ]
        return _pairs(paths, part, parts, dropped), str(paths[1]), "line"


def _pairs(paths, part, parts, dropped):
    """The line of each pair that is kept, its source and its target."""
    lines = usable = 0
    with open_bytes(paths[0]) as source_file, open_bytes(paths[1]) as target_file:
        files = (source_file, target_file)
        sides = [byte_lines(*one, are_several=True) for one in zip(files, paths, strict=True)]
        for lines, pair in enumerate(itertools.zip_longest(*sides), start=1):
            if None in pair:
                rest = sum(1 for side in sides for _ in side)
                raise ValueError(
                    unequal(paths, [lines - 1 if line is None else lines + rest for line in pair])
                )
            if (lines - 1) % parts != part:
                continue
            source, target = map(decode, pair, paths, (lines, lines))
            if reason := objection(source, target):
                path = paths[not objection(source, source)]
                dropped.leave_out(reason, f"{path}, line {lines}")
            else:
                usable += 1
                yield lines, source, target
    if not lines:
        raise ValueError(unequal(paths, [0, 0]))
    if not usable and parts == 1:
        raise ValueError(
            f"{paths[0]} and {paths[1]} have no usable pair: all {lines} have an empty side or a "
            "huge line."
        )


class Lines(Files, name="lines"):
    """Text files of one language. As pairs, each line stands for itself.

    An empty line, or one over 100,000 characters, is dropped and counted.
    """

    @classmethod
    def languages(cls, source, target):
        return source, source

    def load(self):
        folder = self.folder(WHAT)
        language = self.source_language
        paths = [
            prefix and locate(folder, f"{prefix}.{language}", "source_language", argument)
            for argument, prefix in zip(PREFIXES, self.prefixes, strict=True)
        ]
        dropped = Dropped(strict=self.strict)
        texts = [_lines(path, dropped) if path else ParallelText([], []) for path in paths]
        return Corpus("lines", language, language, *texts, dropped=dropped)


def _lines(path, dropped):
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        if reason := objection(line, line):
            dropped.leave_out(reason, f"{path}, line {number}")
        else:
            rows.append((number, line, line))
    if not rows:
        raise ValueError(f"{path} holds no text. Fill it, or name another prefix.")
    return ParallelText.from_rows(rows, str(path))
