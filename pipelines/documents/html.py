"""Pages of HTML: the texts of blocks, with the tags in them."""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from pipelines.documents.segments import VOID, Part, Segment, has_words, with_codes

# Within a text; what begins or ends otherwise ends it.
INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del"),
    *("dfn", "em", "font", "i", "img", "ins", "kbd", "mark", "q", "s", "samp", "small", "span"),
    *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}
# Elements whose end tag may lack, and the tags that end them then.
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
# What is in them is no text, or is not translated within a text.
SILENT = {"script", "style", "template", "svg", "math", "noscript", "object", "iframe"}
LITERAL = {"code", "kbd", "samp", "var"}
PREFORMATTED = {"pre", "textarea"}
# A browser ends "<?" at the first ">", code at its own mark; that of PHP also with the file.
CODE = re.compile(r"<\?(?:php\b|[=\s]).*?(?:\?>|\Z)|<%.*?%>", re.DOTALL)
COVERED = r"<\?[x\n]*>"
# Its end is none of the tag that it stands in.
TAG = re.compile(rf"""</?[A-Za-z](?:=\s*"[^"]*"|=\s*'[^']*'|{COVERED}|[^<>])*+>""")
CHARSET = re.compile(r"<meta\b[^>]*\bcharset\s*=", re.IGNORECASE)
UNIT = re.compile(
    r"&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);?|[ \t\r\n\f]+|.", re.DOTALL
)


def segments(text: str, everything: bool) -> Iterator[Segment]:
    """The texts of blocks that have a letter."""
    page = _Page(text)
    if not page.has_tags:
        raise ValueError("it has no tag")
    # Bytes beyond ASCII would be read by a browser's guess.
    escaped = _in_ascii if text.isascii() and not CHARSET.search(text) else _escaped
    for start, end, parts in page.found:
        if has_words(parts):
            yield Segment(start, end, parts, escaped=escaped, before=text[start:end])


def _escaped(text):
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


def _in_ascii(text):
    return _escaped(text).encode("ascii", "xmlcharrefreplace").decode()


def _covered(code):
    return re.sub(".", "x", code)


class _Page(HTMLParser):
    """Where the texts of blocks stand: an event begins where the one before ends."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.found = []
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._events = []
        text = CODE.sub(lambda one: f"<?{_covered(one[0][2:-1])}>", text)
        self.feed(
            TAG.sub(lambda one: re.sub(COVERED, lambda code: _covered(code[0]), one[0]), text)
        )
        self.close()
        self.has_tags = any(kind in ("open", "close") for kind, *_ in self._events)
        self._group()

    def _event(self, kind, name="", stays=False):
        line, column = self.getpos()
        if kind == "text" and self._events and self._events[-1][0] == kind:
            return
        self._events.append((kind, name, stays, self._lines[line - 1] + column))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        is_marked = "notranslate" in (attributes.get("class") or "")
        self._event("open", tag, is_marked or attributes.get("translate") == "no")

    def handle_startendtag(self, tag, attrs):
        self._event("alone", tag)

    def handle_endtag(self, tag):
        self._event("close", tag)

    def handle_data(self, data):
        self._event("text")

    handle_entityref = handle_charref = handle_data

    def handle_comment(self, data):
        self._event("comment")

    def handle_decl(self, decl):
        self._event("block")

    handle_pi = unknown_decl = handle_decl

    def _group(self):
        """Put together what belongs to one block."""
        parts = []
        start = None
        silent = []
        literal = None
        preformatted = 0
        ends = [*(place for *_, place in self._events[1:]), len(self._text)]
        for (kind, name, stays, place), end in zip(self._events, ends, strict=True):
            raw = self._text[place:end]
            if silent:
                ended = (kind, name) == ("close", silent[0])
                silent = _opened(silent, kind, name)
                if literal is not None and not silent:
                    parts.append(Part(self._text[literal:end], self._text[literal:end], True))
                    literal = None
                if silent or ended:
                    continue
            if kind == "open" and name not in VOID and (stays or name in SILENT | LITERAL):
                silent = [name]
            elif kind in ("open", "close") and name in PREFORMATTED:
                preformatted += 1 if kind == "open" else -1
            if kind not in ("text", "comment") and name not in INLINE:
                self._ended(start, parts)
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
        self._ended(start, parts)

    def _ended(self, start, parts):
        if start is not None:
            self.found.append((start, start + len("".join(part.raw for part in parts)), parts))


def _opened(silent, kind, name):
    """What is open behind a tag, of an element that stays and of what can change its end."""
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
    units = []
    for unit in UNIT.findall(raw):
        if unit.startswith("&"):
            units.append((unit, html.unescape(unit)))
        elif unit.isspace() and unit[0] in " \t\r\n\f" and not is_preformatted:
            units.append((unit, " "))
        else:
            units += zip(unit, unit, strict=True)
    return with_codes(raw, units)
