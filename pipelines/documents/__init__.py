"""Formats that translators work on: PO catalogues, XLIFF, JSON strings, subtitles, HTML pages."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Sequence

from pipelines.documents import html, json_and_srt, po, xliff
from pipelines.documents.segments import Segment, refuse_encoding, translated

# A function for each format: (text, whether to translate again what has a translation) -> segments.
# Its ValueErrors name the line that is wrong.
FORMATS = {
    "po": po.segments,
    "xliff": xliff.segments,
    "json": json_and_srt.strings,
    "srt": json_and_srt.cues,
    "html": html.segments,
}
ENDINGS = {f".{name}": name for name in FORMATS} | {".pot": "po", ".xlf": "xliff", ".htm": "html"}
# Formats that we do not support, and that must not be read as plain lines.
UNREAD = (".jsonl", ".ndjson", ".sdlxliff", ".mqxliff", ".mxliff", ".vtt", ".tmx", ".xml")
UNREAD += (".xhtml", ".resx", ".yaml", ".yml", ".properties", ".strings", ".docx", ".odt")
XML = re.compile(r"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""")
# Formats that hold each source beside its translation.
BILINGUAL = ("po", "xliff")


def format_of(name: str) -> str:
    """Return the format that a file is named for: of `FORMATS`, of `UNREAD`, else "lines"."""
    ending = pathlib.PurePath(name.lower().removesuffix(".gz")).suffix
    return ending if ending in UNREAD else ENDINGS.get(ending, "lines")


@dataclasses.dataclass(frozen=True)
class Document:
    """A file to translate: its byte order mark or "", the text after it, and its segments."""

    mark: str
    text: str
    segments: Sequence[Segment]

    @classmethod
    def read(cls, data: bytes, file_format: str, everything: bool = False) -> "Document":
        """Parse a UTF-8 file in a format of `FORMATS`; `everything`: translate it all again."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ValueError(f"line {line}: not UTF-8. Save the file as UTF-8.") from error
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = text.removeprefix(mark)
        if not text.strip():
            raise ValueError("it is empty")
        if declared := XML.match(text):
            refuse_encoding(declared[1], 1)
        return cls(mark, text, list(FORMATS[file_format](text, everything)))

    def translated(self, translate: Callable[..., list[str]], protects: bool) -> str:
        """Return the file's text with translations: see `segments.translated`."""
        return self.mark + translated(self.text, self.segments, translate, protects)
