"""Catalogues of gettext (.po, .pot): each form of a message is a segment."""

import io
import re
from collections.abc import Iterator

from pipelines.documents.segments import Segment, has_words, with_codes

LINE = re.compile(
    r"[ \t]*(?:(?P<word>msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)[ \t]*)?"
    r'"(?P<text>(?:[^"\\]|\\.)*)"[ \t]*'
)
ESCAPE = r"(?:\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}))+|\\(.)"
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPED = {value: f"\\{name}" for name, value in ESCAPES.items()} | {"\\": "\\\\", '"': '\\"'}


def segments(text: str, everything: bool) -> Iterator[Segment]:
    """Those to translate: without a translation, or marked as fuzzy."""
    fields: dict[str, list] = {}
    current = None
    is_fuzzy = False
    place = 0
    # `str.splitlines` ends lines at U+2028 and the like too, which are text.
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        bare = line.rstrip("\r\n")
        begin = place
        place += len(line)
        is_between = not bare.strip() or bare.lstrip().startswith("#")
        match = None if is_between else LINE.fullmatch(bare)
        word = match and match["word"]
        is_first = is_between or word in ("msgctxt", "msgid")
        if is_first and any(one.startswith("msgstr") for one in fields):
            yield from _forms(fields, is_fuzzy or everything)
            fields = {}
            is_fuzzy = False
        if is_between:
            current = None
            if bare.startswith(("#,", "#~")):  # The flag before an obsolete message is its own.
                is_fuzzy = bare[1] == "," and (is_fuzzy or "fuzzy" in re.split(r"[,\s]+", bare))
            continue
        if match is None or (word is None and current is None):
            raise ValueError(f"line {number}: not what a catalogue has: {bare[:60]!r}")
        if word:
            if word in fields or (word.startswith("msgstr") and "msgid" not in fields):
                raise ValueError(f"line {number}: {word} in the wrong place")
            eol = line[len(bare) :] or "\n"
            current = fields[word] = ["", begin + match.start("text") - 1, 0, eol]
        current[0] += re.sub(ESCAPE, _meant, match["text"])
        current[2] = begin + match.end("text") + 1
    if fields and not any(one.startswith("msgstr") for one in fields):
        raise ValueError("the last message has no msgstr")
    yield from _forms(fields, is_fuzzy or everything)


def _forms(fields, again):
    """The segments of a message; the header, which has no msgid, is none."""
    sources = [fields[name][0] for name in ("msgid", "msgid_plural") if name in fields]
    forms = [name for name in fields if name.startswith("msgstr")]
    if not sources or not sources[0]:
        return
    for form in forms:
        before, start, end, eol = fields[form]
        # One form for all numbers is that of many.
        source = sources[0] if form in ("msgstr", "msgstr[0]") and len(forms) > 1 else sources[-1]
        parts = with_codes(source)
        if (again or not before) and has_words(parts):
            yield Segment(start, end, parts, lambda new, eol=eol: _quoted(new, eol), before=before)


def _meant(found):
    """Escaped bytes in a row may be one letter."""
    if found[1]:
        return ESCAPES.get(found[1], found[1])
    codes = found[0].split("\\")[1:]
    values = bytes(int(one.strip("x"), 16 if one[0] == "x" else 8) % 256 for one in codes)
    return values.decode("utf-8", errors="backslashreplace")


def _quoted(text, eol):
    """A string, each of its lines on a line, below an empty one if there are several."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    quoted = ['"' + "".join(ESCAPED.get(one, one) for one in line) + '"' for line in lines]
    return quoted[0] if len(quoted) == 1 else eol.join(['""', *quoted])
