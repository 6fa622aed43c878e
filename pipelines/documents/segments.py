"""Segments of a file that people translate: where they stand in it, what a model is given of them,
and the file with their translations. What is no text of a segment stays as it is.
"""

import bisect
import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pipelines.vocabularies.protected_spans import KINDS

# What `KINDS` lacks: line breaks and tabs, and placeholders of C, Ruby and Symfony.
OTHERS = r"[\r\n\t]+|%%|%\{[^{}]*\}|(?<![0-9])%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?"
OTHERS += r"[hjlLqtz]*(?:[diuoxXfFeEgGcsp]\b|[du](?=x%|[A-Za-z]+(?!%)\b))|%[A-Za-z_][\w.-]*%"
# What a model must not touch in any file, nor read as part of a line.
ADDRESSES = (*KINDS["urls"], *(rf"(?<![\w.+-]){one}" for one in KINDS["emails"]))
KEPT = re.compile("|".join((OTHERS, *ADDRESSES, *KINDS["placeholders"], *KINDS["tags"])))
BLANKS = " \t\r\n\f"
TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")
# They close nothing, and nothing closes them.
VOID = {"br", "hr", "img", "input", "wbr"}


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a segment: `raw` in the file, `text` as it is read; a code, as a tag is, stays."""

    raw: str
    text: str
    is_code: bool = False


@dataclasses.dataclass(frozen=True)
class Segment:
    """A text to translate.

    Attributes:
        start, end: between which characters of the file its translation is put.
        parts: the source.
        written: what is put there, of the translation as `escaped` made it.
        escaped: the translation as the file writes text.
        before: the translation that stands there; None if there is none.
    """

    start: int
    end: int
    parts: Sequence[Part]
    written: Callable[[str], str] = str
    escaped: Callable[[str], str] = str
    before: str | None = None

    def replacement(self, parts: Iterable[Part | str]) -> str | None:
        """What is put in the file; None: nothing changes. A string is a translated text."""
        raw = "".join(part.raw if isinstance(part, Part) else self.escaped(part) for part in parts)
        return None if raw == self.before else self.written(raw)


def with_codes(raw: str, units: Iterable[tuple[str, str]] = ()) -> list[Part]:
    """The parts of a text: placeholders, tags and line breaks are codes. If it is read otherwise
    than it stands, `units` are its parts: each as it stands, and as it is read.
    """
    units = list(units)
    text = "".join(read for _, read in units) if units else raw
    places = [0, *itertools.accumulate(len(read) for _, read in units)]
    raws = [0, *itertools.accumulate(len(written) for written, _ in units)]

    def part(start, end, is_code):
        if not units:
            return Part(text[start:end], text[start:end], is_code)
        first, last = (bisect.bisect_left(places, place) for place in (start, end))
        return Part(raw[raws[first] : raws[last]], text[start:end], is_code)

    parts = []
    end = 0
    for match in KEPT.finditer(text):
        parts += [part(end, match.start(), False), part(*match.span(), True)]
        end = match.end()
    return [one for one in (*parts, part(end, len(text), False)) if one.raw]


def translated(
    text: str,
    segments: Sequence[Segment],
    translate: Callable[[list[str]], list[str]],
    protects: bool,
) -> str:
    """A file with translations.

    A model that protects spans is given a whole segment, with its codes between ⟦ and ⟧. Where
    these do not come back once each and nested as they were, or a pair of tags has lost its text,
    and for other models, the texts between codes and line breaks are translated by themselves.
    `translate` gives the translations of texts, in which codes stand without brackets.
    """
    found: dict[int, list[Part | str]] = {}
    numbered = enumerate(segments if protects else ())
    whole = {n: _trimmed(one.parts) for n, one in numbered if _fits_whole(one.parts)}
    asked = [
        "".join(f"⟦{part.text}⟧" if part.is_code else part.text for part in inner)
        for _, inner, _ in whole.values()
    ]
    answers = translate(asked) if asked else []
    for (number, (left, inner, right)), answer in zip(whole.items(), answers, strict=True):
        if (back := _read(inner, answer)) is not None:
            found[number] = [*left, *back, *right]
    cut = {n: _cut(one.parts) for n, one in enumerate(segments) if n not in found}
    asked = [part for parts in cut.values() for part in parts if not part.is_code]
    ahead = iter(translate([part.text for part in asked]) if asked else [])
    for number, parts in cut.items():
        found[number] = [
            part if part.is_code or (new := next(ahead)) == part.text else new for part in parts
        ]
    pieces = []
    end = 0
    for number, segment in enumerate(segments):
        if (replacement := segment.replacement(found[number])) is not None:
            pieces += [text[end : segment.start], replacement]
            end = segment.end
    return "".join([*pieces, text[end:]])


def has_words(parts: Iterable[Part]) -> bool:
    """Whether there is a letter to translate."""
    return any(map(str.isalpha, "".join(part.text for part in parts if not part.is_code)))


def _fits_whole(parts):
    """Whether codes can be told from the text, and are nested."""
    codes = [part.text for part in parts if part.is_code]
    raw = {part.text: part.raw for part in parts if part.is_code}
    text = "\n".join(part.text for part in parts if not part.is_code)
    return (
        _are_nested(codes)
        and all(raw[part.text] == part.raw for part in parts if part.is_code)
        and not any(code in text for code in codes)
        and not (codes and re.search("[⟦⟧]", "".join([text, *codes])))
    )


def _steps(codes):
    """Of each code the name that it opens or closes, and which of both."""
    for code in codes:
        match = TAG.fullmatch(code)
        is_alone = match is None or match[3] or match[2].lower() in VOID
        yield (None, 0) if is_alone else (match[2], -1 if match[1] else 1)


def _are_nested(codes):
    opened = []
    for name, step in _steps(codes):
        if step == 1:
            opened.append(name)
        elif step == -1 and (not opened or opened.pop() != name):
            return False
    return not opened


def _hollow(pieces):
    """How many pairs of tags have no text, among texts and codes by turns."""
    steps = itertools.pairwise(step for _, step in _steps(pieces[1::2]))
    return sum(
        pair == (1, -1) and not text.strip()
        for pair, text in zip(steps, pieces[2::2], strict=False)
    )


def _trimmed(parts):
    """Parts before, within and behind what is to be translated: white space, codes that stand
    alone, and pairs of tags around all of it.
    """
    left = []
    right = []
    inner = list(_apart(parts))
    while inner:
        first = inner[0]
        last = inner[-1]
        within = [part.text for part in inner[1:-1] if part.is_code]
        if first.is_code and _are_nested([first.text]):
            left.append(inner.pop(0))
        elif last.is_code and _are_nested([last.text]):
            right.insert(0, inner.pop())
        elif first.is_code and last.is_code and _are_nested(within):
            left.append(inner.pop(0))
            right.insert(0, inner.pop())
        else:
            break
    return left, _merged(inner), right


def _merged(parts):
    """White space within belongs to the text beside it."""
    return [
        part
        if not part.is_code or part.text.strip(" ")
        else dataclasses.replace(part, is_code=False)
        for part in parts
    ]


def _apart(parts):
    """White space at the ends of texts is a part by itself, a code that stays."""
    found = []
    for part in parts:
        words = part.raw.strip(BLANKS)
        if part.is_code or words == part.raw:
            found.append(part)
            continue
        start = part.raw.index(words) if words else len(part.raw)
        before = part.raw[:start]
        behind = part.raw[start + len(words) :]
        pieces = (Part(before, before, True), Part(words, part.text.strip(BLANKS)))
        found += [one for one in (*pieces, Part(behind, behind, True)) if one.raw]
    return found


def _cut(parts):
    """Texts with words, and all that stays between them."""
    return [
        part if part.is_code or has_words([part]) else dataclasses.replace(part, is_code=True)
        for part in _apart(parts)
    ]


def _read(parts, answer):
    """The parts of an answer; None if its codes are others, or a pair of tags has lost its text."""
    if not parts:
        return []
    plain = "".join(part.text for part in parts)
    if answer == plain:
        return parts
    codes = {part.text: part for part in parts if part.is_code}
    if not codes:
        return [answer]
    expression = "|".join(re.escape(code) for code in sorted(codes, key=len, reverse=True))
    found = re.split(f"({expression})", answer)
    if Counter(found[1::2]) != Counter(part.text for part in parts if part.is_code):
        return None
    if not _are_nested(found[1::2]) or _hollow(found) > _hollow(re.split(f"({expression})", plain)):
        return None
    return [codes[one] if place % 2 else one for place, one in enumerate(found)]
