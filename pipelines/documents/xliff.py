"""XLIFF 1.2 and 2: each unit is a segment. Its target gets the inline codes of its source."""

import html
import re
import xml.parsers.expat
from collections.abc import Iterator

from pipelines.documents.segments import Part, Segment, has_words, with_codes

MARKUP = re.compile(
    r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<(?:\"[^\"]*\"|'[^']*'|[^'\">])*>", re.DOTALL
)
UNIT = re.compile(r"&[^;\s]+;|[^&]", re.DOTALL)
ENTITY = re.compile("&(?:lt|gt|amp|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);")
# Elements that hold code of the original file; and tags whose content is not to be translated.
NATIVE = {"ph", "bpt", "ept", "it"}
PROTECTED = re.compile(r"<\S+[^>]*\s(?:translate\s*=\s*.no|mtype\s*=\s*.protected)\b")
UNITS = {"trans-unit", "segment"}
TEXTS = {"source", "seg-source", "target"}
# Characters that XML cannot represent, not even escaped.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# States of targets that are translated again.
AGAIN = re.compile("new|initial|needs-.*")


def segments(text: str, everything: bool) -> Iterator[Segment]:
    """Yield the segments without a target, or whose target needs work by its state."""
    for unit in _UnitFinder(text).units:
        # XLIFF 1.2 marks the sentences of a source in a copy; a target has the same marks.
        marked = unit.get("seg-source", unit["source"])
        parts = list(_parts(text[slice(*marked)] or text[slice(*unit["source"])]))
        target = unit.get("target")
        before = text[slice(*target)] if target else None
        again = everything or AGAIN.fullmatch(unit.get("state") or "")
        # A target of codes alone is no translation yet.
        raws = (part.raw for part in _parts(before or "") if part.text.strip())
        is_translated = any(raw[0] != "<" or PROTECTED.match(raw) for raw in raws)
        if not has_words(parts) or (is_translated and not again):
            continue
        start, end = target or (unit["behind"], unit["behind"])
        ends = ("", "")
        if target is None:
            name = f"{unit['prefix']}target"
            ends = (f"{unit['indent']}<{name}>", f"</{name}>")
        elif unit["empty"]:
            start, end = unit["empty"]
            ends = (text[start : end - 2].rstrip() + ">", f"</{unit['prefix']}target>")
        yield Segment(
            start,
            end,
            parts,
            lambda new, ends=ends: ends[0] + new + ends[1],
            lambda new: html.escape(FORBIDDEN.sub("", new), quote=False),
            before,
        )


class _UnitFinder:
    """Finds the offsets of the sources and targets of `units`, by expat."""

    def __init__(self, text):
        self.units = []
        self._text = text
        self._path = []
        self._unit = None
        self._last = (0, 0)
        self._data = text.encode("utf-8")
        self._parser = xml.parsers.expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        try:
            self._parser.Parse(self._data, True)
        except xml.parsers.expat.ExpatError as error:
            reason = xml.parsers.expat.errors.messages[error.code]
            raise ValueError(f"line {error.lineno}: {reason}") from error
        if self._root != "xliff":
            raise ValueError(f"its root is <{self._root}> and not <xliff>")

    def _place(self):
        """Return the parser's offset in characters; it counts bytes."""
        byte, place = self._last
        now = self._parser.CurrentByteIndex
        place += len(self._data[byte:now].decode("utf-8"))
        self._last = (now, place)
        return place

    def _start(self, tag, attributes):
        prefix, _, name = tag.rpartition(":")
        if not self._path:
            self._root = name
        translate = attributes.get("translate", self._path[-1][1] if self._path else "yes")
        self._path.append((name, translate))
        place = self._place()
        parent = self._path[-2][0] if len(self._path) > 1 else ""
        if name in UNITS:
            self._unit = {"state": attributes.get("state"), "prefix": prefix and f"{prefix}:"}
        elif self._unit is not None and parent in UNITS and name in TEXTS:
            end = MARKUP.match(self._text, place).end()
            self._unit[name] = (end, end)
            if name != "target":
                # Only behind the tag before it: a file may be a single line.
                line = self._text.rfind("\n", self._text.rfind(">", 0, place) + 1, place)
                line -= self._text[line - 1 : line] == "\r"
                indent = self._text[line:place] if line >= 0 else ""
                self._unit["indent"] = indent if not indent.strip() else ""
            else:
                self._unit["state"] = attributes.get("state") or self._unit["state"]
                self._unit["empty"] = (place, end) if self._text[end - 2] == "/" else None

    def _end(self, tag):
        name, translate = self._path.pop()
        parent = self._path[-1][0] if self._path else ""
        place = self._place()
        if name in UNITS:
            if self._unit and translate != "no" and "source" in self._unit:
                self.units.append(self._unit)
            self._unit = None
        elif self._unit is not None and parent in UNITS:
            if name in TEXTS:
                start, _ = self._unit[name]
                self._unit[name] = (start, max(start, place))
            if name in ("source", "seg-source"):
                # After an empty element, such as <source/>, the parser is already past it.
                has_end = self._text.startswith(f"</{tag}", place)
                self._unit["behind"] = MARKUP.match(self._text, place).end() if has_end else place


def _parts(raw):
    """Split a source into parts: tags are codes, with their content if that is native code."""
    end = 0
    opened = []
    start = 0
    for match in MARKUP.finditer(raw):
        if not opened:
            yield from _texts(raw[end : match.start()])
        end = match.end()
        tag = match[0]
        name = re.match(r"</?([^\s/>]*)", tag)[1].rpartition(":")[2]
        if opened:
            if name == opened[-1] and not tag.endswith("/>"):
                opened = opened[:-1] if tag.startswith("</") else [*opened, name]
                if not opened:
                    yield Part(raw[start:end], raw[start:end], True)
        elif (name in NATIVE or PROTECTED.match(tag)) and not re.match("</|.*/>$", tag, re.DOTALL):
            opened.append(name)
            start = match.start()
        elif tag.startswith("<![CDATA["):
            yield from _texts(html.escape(tag[9:-3], quote=False))
        else:
            yield Part(tag, tag, True)
    yield from _texts(raw[end:])


def _texts(raw):
    units = UNIT.findall(raw) if "&" in raw else []
    decoded = (html.unescape(unit) if ENTITY.fullmatch(unit) else unit for unit in units)
    return with_codes(raw, zip(units, decoded, strict=True))
