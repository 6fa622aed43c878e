"""Files that people translate: catalogues, translation units, strings, subtitles, pages."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Sequence

from pipelines.documents import html, json_and_srt, po, xliff
from pipelines.documents.segments import Segment, translated

# What gives the segments of a file of each format, from its text and whether what is translated
# is translated again. A ValueError names the line that is wrong.
FORMATS = {
    "po": po.segments,
    "xliff": xliff.segments,
    "json": json_and_srt.strings,
    "srt": json_and_srt.cues,
    "html": html.segments,
}
# By how the name of a file ends.
ENDINGS = {**{f".{one}": one for one in FORMATS}, ".pot": "po", ".xlf": "xliff", ".htm": "html"}
# Files that are no text in lines, nor of one of these formats.
UNREAD = (".jsonl", ".ndjson", ".sdlxliff", ".mqxliff", ".mxliff", ".vtt", ".tmx")
# What such a file says of its own encoding; in a template of gettext this is "CHARSET".
ENCODING = re.compile(
    r"""(?:<meta\b[^>]*?\bcharset=|<\?xml\b[^>]*?\bencoding=|^"Content-Type:.*\bcharset=)"""
    r"""["'\s]*(?!utf-?8\b|charset\b)(?P<name>[\w.:-]+)""",
    re.IGNORECASE | re.MULTILINE,
)
# Those with the source and its translation beside each other.
BILINGUAL = ("po", "xliff")


def format_of(name: str) -> str:
    """The format that the ending of a file's name says, "lines" if none; one of `UNREAD` itself."""
    ending = pathlib.PurePath(name.lower().removesuffix(".gz")).suffix
    return ending if ending in UNREAD else ENDINGS.get(ending, "lines")


@dataclasses.dataclass(frozen=True)
class Document:
    """A file that people translate: the mark of byte order that it begins with, or "", the rest of
    it, and what is to be translated in that.
    """

    mark: str
    text: str
    segments: Sequence[Segment]

    @classmethod
    def read(cls, data: bytes, file_format: str, everything: bool = False) -> "Document":
        """Read a file of a format of `FORMATS`, in UTF-8."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ValueError(f"line {line}: not UTF-8. Save the file as UTF-8.") from error
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = text.removeprefix(mark)
        if not text.strip():
            raise ValueError("it is empty")
        said = ENCODING.search(text) if file_format in ("po", "xliff", "html") else None
        if said:
            line = text.count("\n", 0, said.start("name")) + 1
            raise ValueError(f"line {line}: it says {said['name']}. Convert it, and say UTF-8.")
        return cls(mark, text, list(FORMATS[file_format](text, everything)))

    def translated(self, translate: Callable[[list[str]], list[str]], protects: bool) -> str:
        """The file with translations: see `segments.translated`."""
        return self.mark + translated(self.text, self.segments, translate, protects)
