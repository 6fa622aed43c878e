"""Segments of a file to translate: where they stand in it, what the model reads of them, and the
file with their translations. Everything else in the file stays as it is.
"""

import bisect
import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pipelines.vocabularies.protected_spans import KINDS

# Line breaks and tabs, and the placeholders of C, Ruby and Symfony, which `KINDS` lacks.
FORMATTING = (
    r"[\r\n\t]+|%%|%\{[^{}]*\}|(?<![0-9])%(?:\d+\$)?[-+#0]*(?:[1-9]\d*|\*)?(?:\.(?:\d+|\*))?"
)
FORMATTING += r"[hjlLqtz]*(?:[diuoxXfFeEgGcsp]\b|[du](?=x%|[A-Za-z]+(?!%)\b))|%[A-Za-z_][\w.-]*%"
ADDRESSES = (*KINDS["urls"], *(rf"(?<![\w.+-]){pattern}" for pattern in KINDS["emails"]))
# Codes, which the model must not change in any file.
CODES = re.compile("|".join((FORMATTING, *ADDRESSES, *KINDS["placeholders"], *KINDS["tags"])))
BLANKS = " \t\r\n\f"
TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")
# The encoding that we read, and what gettext's templates declare.
UTF_8 = re.compile(r"utf-?8\b|charset\b", re.IGNORECASE)
# Elements of HTML without an end tag.
VOID = {"br", "hr", "img", "input", "wbr"}


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a segment: `raw` as in the file, `text` decoded. Codes, such as tags, stay."""

    raw: str
    text: str
    is_code: bool = False


@dataclasses.dataclass(frozen=True)
class Segment:
    """A text to translate.

    Attributes:
        start, end: offsets of the characters of the file that its translation replaces.
        parts: the source.
        written: wraps the escaped translation for the file, for example in quotes.
        escaped: escapes a translated text as the file's format requires.
        before: the translation in the file; None if there is none.
    """

    start: int
    end: int
    parts: Sequence[Part]
    written: Callable[[str], str] = str
    escaped: Callable[[str], str] = str
    before: str | None = None

    def replacement(self, parts: Iterable[Part | str]) -> str | None:
        """Return the new text for the file; None if it is unchanged. Strings are translated."""
        raw = "".join(part.raw if isinstance(part, Part) else self.escaped(part) for part in parts)
        return None if raw == self.before else self.written(raw)


def refuse_encoding(name: str, line: int) -> None:
    """Refuse a file that declares another encoding than UTF-8, in a line."""
    if not UTF_8.match(name):
        raise ValueError(f"line {line}: it declares {name}. Convert it, and declare UTF-8.")


def with_codes(raw: str, units: Iterable[tuple[str, str]] = ()) -> list[Part]:
    """Split a text into parts: placeholders, tags and line breaks are codes. If the file escapes
    text, `units` are its (escaped, decoded) pieces; a part holds whole ones.
    """
    units = list(units)
    text = "".join(decoded for _, decoded in units) if units else raw
    places = [0, *itertools.accumulate(len(decoded) for _, decoded in units)]
    raws = [0, *itertools.accumulate(len(escaped) for escaped, _ in units)]

    def between(start, end, is_code):
        if not units:
            return Part(text[start:end], text[start:end], is_code)
        first, last = (bisect.bisect_left(places, place) for place in (start, end))
        return Part(raw[raws[first] : raws[last]], text[start:end], is_code)

    parts = []
    end = 0
    for match in CODES.finditer(text):
        parts += [between(end, match.start(), False), between(*match.span(), True)]
        end = match.end()
    return [part for part in (*parts, between(end, len(text), False)) if part.raw]


def translated(
    text: str,
    segments: Sequence[Segment],
    translate: Callable[[list[str], list[int]], list[str]],
    protects: bool,
) -> str:
    """Return the file's text with its segments translated.

    A model that protects spans translates whole segments, with each code between ⟦ and ⟧. If an
    answer lacks, repeats or misnests codes, or a pair of tags loses its text, and for other models,
    the texts between codes are translated one by one. `translate` translates a list of texts,
    with the lines that they begin in, and returns the codes without their brackets.
    """
    breaks = [match.start() for match in re.finditer("\n", text)]
    lines = [bisect.bisect(breaks, segment.start) + 1 for segment in segments]
    results: dict[int, list[Part | str]] = {}
    numbered = enumerate(segments if protects else ())
    whole = {n: _trimmed(segment.parts) for n, segment in numbered if _fits_whole(segment.parts)}
    sources = [
        "".join(f"⟦{part.text}⟧" if part.is_code else part.text for part in inner)
        for _, inner, _ in whole.values()
    ]
    answers = translate(sources, [lines[n] for n in whole]) if sources else []
    for (number, (left, inner, right)), answer in zip(whole.items(), answers, strict=True):
        if (parts := _parts_of_answer(inner, answer)) is not None:
            results[number] = [*left, *parts, *right]
    cut = {n: _cut(segment.parts) for n, segment in enumerate(segments) if n not in results}
    rows = [(part.text, lines[n]) for n in cut for part in cut[n] if not part.is_code]
    answers = iter(translate(*map(list, zip(*rows, strict=True))) if rows else [])
    for number, parts in cut.items():
        results[number] = [
            part if part.is_code or (new := next(answers)) == part.text else new for part in parts
        ]
    pieces = []
    end = 0
    for number, segment in enumerate(segments):
        if (replacement := segment.replacement(results[number])) is not None:
            pieces += [text[end : segment.start], replacement]
            end = segment.end
    return "".join([*pieces, text[end:]])


def has_words(parts: Iterable[Part]) -> bool:
    """Return whether there is a letter to translate."""
    return any(map(str.isalpha, "".join(part.text for part in parts if not part.is_code)))


def _fits_whole(parts):
    """Return whether codes are nested and cannot be confused with the text or with each other."""
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
    """Yield (name, 1) for an opening tag, (name, -1) for a closing one, (None, 0) for the rest."""
    for code in codes:
        match = TAG.fullmatch(code)
        is_alone = match is None or match[3] or match[2].lower() in VOID
        yield (None, 0) if is_alone else (match[2], -1 if match[1] else 1)


def _are_nested(codes):
    stack = []
    for name, step in _steps(codes):
        if step == 1:
            stack.append(name)
        elif step == -1 and (not stack or stack.pop() != name):
            return False
    return not stack


def _num_empty_tags(pieces):
    """Count the pairs of tags without text; `pieces` alternate between text and code."""
    steps = itertools.pairwise(step for _, step in _steps(pieces[1::2]))
    return sum(
        pair == (1, -1) and not text.strip()
        for pair, text in zip(steps, pieces[2::2], strict=False)
    )


def _trimmed(parts):
    """Split parts into (left, inner, right): the model needs to read only `inner`. White space,
    lone codes at the ends, and pairs of tags around everything go left and right.
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
    """Make spaces within a text part of it again: they are no codes."""
    return [
        dataclasses.replace(part, is_code=part.is_code and bool(part.text.strip(" ")))
        for part in parts
    ]


def _apart(parts):
    """Split white space off the ends of texts, as codes."""
    split = []
    for part in parts:
        words = part.raw.strip(BLANKS)
        if part.is_code or words == part.raw:
            split.append(part)
            continue
        start = part.raw.index(words) if words else len(part.raw)
        before = part.raw[:start]
        behind = part.raw[start + len(words) :]
        text = Part(words, part.text.strip(BLANKS))
        pieces = (Part(before, before, True), text, Part(behind, behind, True))
        split += [piece for piece in pieces if piece.raw]
    return split


def _cut(parts):
    """Split parts into texts with words, to be translated one by one, and codes."""
    return [
        part if part.is_code or has_words([part]) else dataclasses.replace(part, is_code=True)
        for part in _apart(parts)
    ]


def _parts_of_answer(parts, answer):
    """Split a translation of parts; None if its codes are wrong, or a pair of tags lost its text.
    Translated texts are strings.
    """
    if not parts:
        return []
    plain = "".join(part.text for part in parts)
    if answer == plain:
        return parts
    codes = {part.text: part for part in parts if part.is_code}
    if not codes:
        return [answer]
    expression = "|".join(re.escape(code) for code in sorted(codes, key=len, reverse=True))
    before, after = (re.split(f"({expression})", text) for text in (plain, answer))
    if Counter(after[1::2]) != Counter(part.text for part in parts if part.is_code):
        return None
    if not _are_nested(after[1::2]) or _num_empty_tags(after) > _num_empty_tags(before):
        return None
    return [codes[piece] if place % 2 else piece for place, piece in enumerate(after)]
