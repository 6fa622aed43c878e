"""Strings of JSON files, and subtitles (SubRip, .srt)."""

import json
import re
from collections.abc import Iterator

from pipelines.documents.segments import BLANKS, Segment, has_words, with_codes

STRING = re.compile(r'"(?:[^"\\]|\\.)*"(?P<name>\s*:)?')
SURROGATE = re.compile("[\ud800-\udfff]")
TIME = r"\d+:\d\d:\d\d[,.]\d{1,3}"
# What follows the end of a cue: the next one, or nothing.
AFTER = re.compile(rf"\s*(?:\Z|\d+[^\S\n]*\n[ \t]*{TIME}[ \t]*-->)")
TIMES = re.compile(rf"[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}(?:[ \t].*)?")


def strings(text: str, everything: bool) -> Iterator[Segment]:
    """Yield the string values that have a letter; keys are not translated."""
    try:
        json.loads(text, parse_int=str)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("too many levels of nesting") from error
    is_ascii = text.isascii() and "\\u" in text

    def written(new):
        return json.dumps(new, ensure_ascii=is_ascii)

    for match in STRING.finditer(text):
        if match["name"]:
            continue
        value = json.loads(match[0])
        if SURROGATE.search(value):
            line = text.count("\n", 0, match.start()) + 1
            raise ValueError(f"line {line}: half of a surrogate pair, which encodes no letter")
        parts = with_codes(value)
        if has_words(parts):
            yield Segment(*match.span(), parts, written, before=value)


def cues(text: str, everything: bool) -> Iterator[Segment]:
    """Yield the texts of all cues. A blank line ends a cue."""
    place = start = 0
    state = "between"
    for number, line in enumerate([*re.findall(r"[^\n]*\n|[^\n]+", text), ""], 1):
        bare = line.strip()
        # A no-break space alone is a line of the text, unless the cue ends there.
        is_blank = not line.strip(BLANKS) or (not bare and AFTER.match(text, place + len(line)))
        if state == "text" and is_blank:
            end = start + len(text[start:place].rstrip("\r\n"))
            parts = with_codes(text[start:end])
            if has_words(parts):
                yield Segment(start, end, parts, before=text[start:end])
            state = "between"
        elif state == "text" and TIMES.fullmatch(bare):
            raise ValueError(f"line {number}: times within a text. Put a blank line between cues.")
        elif state == "between" and bare:
            if not bare.isdecimal():
                raise ValueError(f"line {number}: not the number of a cue: {bare[:60]!r}")
            state = "times"
        elif state == "times":
            if not TIMES.fullmatch(line.rstrip("\r\n")):
                raise ValueError(f"line {number}: not the times of a cue: {bare[:60]!r}")
            state = "text"
            start = place + len(line)
        place += len(line)
