"""The user's own text files, `<data_dir>/<prefix>.<language>[.gz]`, one sentence a line. With two
languages, line N of one file translates line N of the other; with one, each line is its own target.
"""

import contextlib
import itertools

from pipelines.corpora.options import PREFIXES, Files, Streamed
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection
from pipelines.dropped import Dropped
from pipelines.line_files import byte_lines, decode, locate, open_bytes, unequal


class TextFiles(Streamed, Files, name="text_files"):
    """Text files of two languages.

    A pair with an empty side, or with a line over 100,000 characters, is dropped and counted.
    """

    def rows(self, split, dropped, part=0, parts=1):
        self.two_languages()
        return _rows(self, ("source_language", "target_language"), split, dropped, part, parts)


def _rows(corpus, sides, split, dropped, part=0, parts=1):
    """Return what `Streamed.rows` does, from one or two files, one for each side."""
    prefix = corpus.prefixes[split]
    if prefix is None:
        return iter(()), "", "line"
    folder = corpus.folder("the folder with the text files")
    paths = [
        locate(folder, f"{prefix}.{getattr(corpus, side)}", side, PREFIXES[split]) for side in sides
    ]
    return _pairs(paths, part, parts, dropped), str(paths[-1]), "line"


def _pairs(paths, part, parts, dropped):
    """Yield (line number, source, target) of each usable pair; from one file, equal sides."""
    lines = usable = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open_bytes(path)) for path in paths]
        sides = [byte_lines(*opened, are_several=True) for opened in zip(files, paths, strict=True)]
        for lines, pair in enumerate(itertools.zip_longest(*sides), start=1):
            if None in pair:
                rest = sum(1 for side in sides for _ in side)
                raise ValueError(
                    unequal(paths, [lines - 1 if line is None else lines + rest for line in pair])
                )
            if (lines - 1) % parts != part:
                continue
            texts = [decode(line, path, lines) for line, path in zip(pair, paths, strict=True)]
            source = texts[0]
            target = texts[-1]
            if reason := objection(source, target):
                path = paths[not objection(source, source)]
                dropped.leave_out(reason, f"{path}, line {lines}")
            else:
                usable += 1
                yield lines, source, target
    if not lines:
        raise ValueError(unequal(paths, [0] * len(paths)))
    if not usable and parts == 1:
        raise ValueError(
            f"{' and '.join(map(str, paths))}: no usable pair: all {lines} have an empty side or a "
            "huge line. Correct them, or name other files."
        )


class Lines(Files, name="lines"):
    """Text files of one language. As pairs, each line is its own target.

    An empty line, or one over 100,000 characters, is dropped and counted.
    """

    @classmethod
    def languages(cls, source, target):
        return source, source

    def load(self):
        language = self.source_language
        dropped = Dropped(strict=self.strict)
        rows = [_rows(self, ("source_language",), split, dropped) for split in range(3)]
        texts = [ParallelText.from_rows(*split) for split in rows]
        return Corpus("lines", language, language, *texts, dropped=dropped)
