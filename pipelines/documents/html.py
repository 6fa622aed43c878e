"""HTML pages: each block's text is a segment, with the inline tags in it."""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from pipelines.documents.segments import (
    BLANKS,
    VOID,
    Part,
    Segment,
    has_words,
    refuse_encoding,
    with_codes,
)

# Elements inside a text; the tags of all others end it.
INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del"),
    *("dfn", "em", "font", "i", "img", "ins", "kbd", "mark", "q", "s", "samp", "small", "span"),
    *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}
# Elements whose end tag may be omitted, and the tags that end them then.
ENDS = {
    "p": "address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption|"
    "figure|footer|form|h[1-6r]|header|hgroup|main|menu|nav|ol|p|pre|search|section|summary|"
    "table|ul",
    "li": "li",
    **dict.fromkeys(("dt", "dd"), "d[td]"),
    **dict.fromkeys(("td", "th"), "t[dhr]|tbody|tfoot"),
    "tr": "tr|tbody|tfoot",
    "option": "option|optgroup",
}
# Elements whose content is not text, and those whose content is not translated within a text.
SILENT = {"script", "style", "template", "svg", "math", "noscript", "object", "iframe"}
LITERAL = {"code", "kbd", "samp", "var"}
PREFORMATTED = {"pre", "textarea"}
# PHP, which ends at "?>" or with the file, or "<% %>". A browser would end "<?" at the first ">".
CODE = re.compile(r"<\?(?:php\b|[=\s]).*?(?:\?>|\Z)|<%.*?%>", re.DOTALL)
MASKED = r"<\?[x\n]*>"
# A tag may hold masked code, whose ">" does not end the tag.
TAG = re.compile(rf"""</?[A-Za-z](?:=\s*"[^"]*"|=\s*'[^']*'|{MASKED}|[^<>])*+>""")
CHARSET = re.compile(r"\s*text/[\w+]+\s*;\s*charset\s*=[\"'\s]*([\w.:-]+)", re.IGNORECASE)
ENTITY = "&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);?"
LETTER = re.compile(f"{ENTITY}|.", re.DOTALL)
UNIT = re.compile(f"[{BLANKS}]+|{LETTER.pattern}", re.DOTALL)


def segments(text: str, everything: bool) -> Iterator[Segment]:
    """Yield the texts of blocks that have a letter."""
    page = _Page(text)
    if not page.has_tags:
        raise ValueError("it has no tag")
    # Without a charset, a browser would guess the encoding of bytes beyond ASCII.
    escaped = _in_ascii if text.isascii() and not page.has_charset else _escaped
    for start, end, parts in page.blocks:
        if has_words(parts):
            yield Segment(start, end, parts, escaped=escaped, before=text[start:end])


def _escaped(text):
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


def _in_ascii(text):
    return _escaped(text).encode("ascii", "xmlcharrefreplace").decode()


def _masked(code):
    return re.sub(".", "x", code)


class _Page(HTMLParser):
    """Finds the texts of blocks: (start, end, parts) of each. An event lasts until the next one."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.blocks = []
        self.has_charset = False
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._events = []
        text = CODE.sub(lambda code: f"<?{_masked(code[0][2:-1])}>", text)
        self.feed(TAG.sub(lambda tag: re.sub(MASKED, lambda code: _masked(code[0]), tag[0]), text))
        self.close()
        self.has_tags = any(kind in ("open", "close") for kind, *_ in self._events)
        self._group()

    def _event(self, kind, name="", is_literal=False):
        line, column = self.getpos()
        if kind == "text" and self._events and self._events[-1][0] == kind:
            return
        self._events.append((kind, name, is_literal, self._lines[line - 1] + column))

    def _attributes(self, tag, attrs):
        """Return the attributes of a tag; refuse the encoding that a <meta> may declare."""
        attributes = {name: value or "" for name, value in reversed(attrs)}  # The first one counts.
        content = CHARSET.match(attributes.get("content", ""))
        declared = attributes.get("charset") or (content and content[1])
        if tag == "meta" and declared:
            self.has_charset = True
            refuse_encoding(declared, self.getpos()[0])
        return attributes

    def handle_starttag(self, tag, attrs):
        attributes = self._attributes(tag, attrs)
        is_marked = "notranslate" in attributes.get("class", "").split()
        self._event("open", tag, is_marked or attributes.get("translate", "").lower() == "no")

    def handle_startendtag(self, tag, attrs):
        self._attributes(tag, attrs)
        self._event("alone", tag)

    def handle_endtag(self, tag):
        self._event("close", tag)

    def handle_data(self, data):
        self._event("text")

    handle_entityref = handle_charref = handle_data

    def handle_comment(self, data):
        self._event("comment")

    def parse_marked_section(self, i, report=1):
        """Take a section for a comment that ends at the next ">", as browsers do."""
        is_data = self.rawdata.startswith("<![CDATA[", i)
        return super().parse_marked_section(i, report) if is_data else self.parse_bogus_comment(i)

    def handle_decl(self, decl):
        self._event("block")

    handle_pi = unknown_decl = handle_decl

    def _group(self):
        """Group the events into blocks."""
        parts = []
        start = None
        silent = []  # Open elements whose content is not translated.
        literal = None  # Where the first of them begins if it is part of a text.
        preformatted = 0
        ends = [*(place for *_, place in self._events[1:]), len(self._text)]
        for (kind, name, is_literal, place), end in zip(self._events, ends, strict=True):
            raw = self._text[place:end]
            if silent:
                has_ended = (kind, name) == ("close", silent[0])
                silent = _still_open(silent, kind, name)
                if literal is not None and not silent:
                    parts.append(Part(self._text[literal:end], self._text[literal:end], True))
                    literal = None
                if silent or has_ended:
                    continue
            if kind == "open" and name not in VOID and (is_literal or name in SILENT | LITERAL):
                silent = [name]
            elif kind in ("open", "close") and name in PREFORMATTED:
                preformatted = max(0, preformatted + (1 if kind == "open" else -1))
            if kind not in ("text", "comment") and name not in INLINE:
                self._add_block(start, parts)
                parts = []
                start = None
                continue
            start = place if start is None else start
            if silent:
                literal = place
            elif kind == "text":
                parts += _texts(raw, preformatted > 0)
            else:
                parts.append(Part(raw, raw, True))
        self._add_block(start, parts)

    def _add_block(self, start, parts):
        if start is not None:
            self.blocks.append((start, start + len("".join(part.raw for part in parts)), parts))


def _still_open(silent, kind, name):
    """Return the open elements after a tag: an untranslated one, and those that affect its end."""
    ends = ENDS.get(silent[0])
    if kind == "close" and name in silent:
        return silent[: -1 - silent[::-1].index(name)]
    if kind == "close" and ends:
        return silent if name in INLINE | {"p"} else []
    if kind in ("open", "alone") and ENDS.keys() >= {*silent} and re.fullmatch(ends, name):
        return []
    counts = name not in INLINE | VOID if ends else name == silent[0]
    return [*silent, name] if kind == "open" and counts else silent


def _texts(raw, is_preformatted):
    if is_preformatted:
        return with_codes(raw, [(unit, html.unescape(unit)) for unit in LETTER.findall(raw)])
    units = UNIT.findall(raw)
    decoded = (" " if unit[0] in BLANKS else html.unescape(unit) for unit in units)
    return with_codes(raw, zip(units, decoded, strict=True))
