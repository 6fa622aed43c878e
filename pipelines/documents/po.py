"""gettext catalogues (.po, .pot): each plural form of a message is a segment."""

import io
import re
from collections.abc import Iterator

from pipelines.documents.segments import Segment, has_words, refuse_encoding, with_codes

LINE = re.compile(
    r"[ \t]*(?:(?P<word>msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)[ \t]*)?"
    r'"(?P<text>(?:[^"\\]|\\.)*)"[ \t]*'
)
CHARSET = re.compile(r"Content-Type:.*\bcharset=([\w.:-]+)", re.IGNORECASE)
ESCAPE = r"(?:\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}))+|\\(.)"
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPED = {value: f"\\{name}" for name, value in ESCAPES.items()} | {"\\": "\\\\", '"': '\\"'}


def segments(text: str, everything: bool) -> Iterator[Segment]:
    """Yield the segments without a translation, or marked as fuzzy; or all, if `everything`."""
    fields: dict[str, list] = {}
    current = None
    is_fuzzy = False
    place = 0
    # `str.splitlines` would also end lines at U+2028 and the like, which are text.
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        bare = line.rstrip("\r\n")
        begin = place
        place += len(line)
        is_between = not bare.strip() or bare.lstrip().startswith("#")
        match = None if is_between else LINE.fullmatch(bare)
        word = match and match["word"]
        is_first = is_between or word in ("msgctxt", "msgid")
        if is_first and any(field.startswith("msgstr") for field in fields):
            yield from _forms(fields, is_fuzzy or everything)
            fields = {}
            is_fuzzy = False
        if is_between:
            current = None
            if bare.startswith(("#,", "#~")):  # A flag before an obsolete message belongs to that.
                is_fuzzy = bare[1] == "," and (is_fuzzy or "fuzzy" in re.split(r"[,\s]+", bare))
            continue
        if match is None or (word is None and current is None):
            raise ValueError(f"line {number}: no line of a PO file: {bare[:60]!r}")
        if word:
            if word in fields or (word.startswith("msgstr") and "msgid" not in fields):
                raise ValueError(f"line {number}: {word} in the wrong place")
            eol = line[len(bare) :] or "\n"
            current = fields[word] = ["", begin + match.start("text") - 1, 0, eol]
        current[0] += re.sub(ESCAPE, _unescaped, match["text"])
        declared = CHARSET.match(match["text"])
        if declared and "msgstr" in fields and not fields["msgid"][0]:  # In the header.
            refuse_encoding(declared[1], number)
        current[2] = begin + match.end("text") + 1
    if fields and not any(field.startswith("msgstr") for field in fields):
        raise ValueError("the last message has no msgstr")
    yield from _forms(fields, is_fuzzy or everything)


def _forms(fields, again):
    """Yield the segments of a message. The header, whose msgid is empty, has none."""
    sources = [fields[name][0] for name in ("msgid", "msgid_plural") if name in fields]
    forms = [name for name in fields if name.startswith("msgstr")]
    if not sources or not sources[0]:
        return
    for form in forms:
        before, start, end, eol = fields[form]
        # A language with a single form for all numbers translates the plural.
        source = sources[0] if form in ("msgstr", "msgstr[0]") and len(forms) > 1 else sources[-1]
        parts = with_codes(source)
        if (again or not before) and has_words(parts):
            yield Segment(start, end, parts, lambda new, eol=eol: _quoted(new, eol), before=before)


def _unescaped(escape):
    """Decode an escaped character, or a run of escaped bytes, which may be one letter of UTF-8."""
    if escape[1]:
        return ESCAPES.get(escape[1], escape[1])
    codes = escape[0].split("\\")[1:]
    values = bytes(int(code.strip("x"), 16 if code[0] == "x" else 8) % 256 for code in codes)
    return values.decode("utf-8", errors="backslashreplace")


def _quoted(text, eol):
    """Quote a string, one line a line, as gettext does: several lines follow an empty string."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    quoted = ['"' + "".join(ESCAPED.get(char, char) for char in line) + '"' for line in lines]
    return quoted[0] if len(quoted) == 1 else eol.join(['""', *quoted])
