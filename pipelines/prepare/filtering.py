"""Filters that drop pairs not worth learning from, one pair at a time, and a random sample of the
others (Vaswani et al. 2017, section 5.1: the training data).
"""

import dataclasses
import functools
import hashlib
import logging

from pipelines.corpora.parallel_text import objection

# "OK" and "In Ordnung" translate each other, and differ fivefold in length: the length ratio judges
# only pairs whose longer side has more characters than this.
SHORT = 10
# Bytes of a digest.
DIGEST = 16
# Names and quotations in another script are common, but most letters must be in the right one.
LEAST_SHARE = 0.5
# CLDR's scripts that Unicode divides or names otherwise.
UNICODE_SCRIPTS = {
    "Jpan": ("Han", "Hiragana", "Katakana"),
    "Kore": ("Hangul", "Han"),
    "Hans": ("Han",),
    "Hant": ("Han",),
    "Hanb": ("Han", "Bopomofo"),
    "Jamo": ("Hangul",),
    "Latf": ("Latin",),
    "Latg": ("Latin",),
}

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Filters:
    """Rules for dropping a pair: the longer side has over `max_length_ratio` times the characters
    of the shorter; both sides are equal; or less than half of a side's letters are in its Unicode
    scripts. None drops nothing. A tag before a source does not count as text.
    """

    max_length_ratio: float | None = None
    drop_untranslated: bool = False
    source_scripts: tuple[str, ...] | None = None
    target_scripts: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()

    def reason_to_drop(self, source: str, target: str) -> str | None:
        """Return why a pair is not worth learning from, or None if it is."""
        if reason := objection(source.strip(), target.strip()):
            return reason
        first, _, rest = source.partition(" ")
        source = rest if first in self.tags else source
        shorter, longer = sorted((len(source), len(target)))
        if self.drop_untranslated and source == target:
            return "untranslated"
        if self.max_length_ratio and longer > SHORT and longer > self.max_length_ratio * shorter:
            return "length ratio"
        sides = ((self.source_scripts, source), (self.target_scripts, target))
        return None if all(is_written_in(*side) for side in sides) else "other script"


def is_written_in(scripts: tuple[str, ...] | None, text: str) -> bool:
    """Return whether at least half of a text's letters are in some Unicode scripts; None: any.
    Letters that several scripts share, such as the Japanese "ー", do not count.
    """
    if scripts is None:
        return True
    inside, outside = (sum(map(len, runs.findall(text))) for runs in _letters(scripts))
    return inside * (1 - LEAST_SHARE) >= outside * LEAST_SHARE


@functools.cache
def _letters(scripts):
    """Return expressions for runs of letters in some scripts, and in others."""
    import regex

    inside = "".join(rf"\p{{Script={script}}}" for script in scripts)
    shared = r"\p{Script=Common}\p{Script=Inherited}"
    expressions = (rf"[\p{{L}}&&[{inside}]]+", rf"[\p{{L}}--[{inside}{shared}]]+")
    return tuple(regex.compile(f"(?V1){expression}") for expression in expressions)


def scripts_of(language: str) -> tuple[str, ...] | None:
    """Return the Unicode scripts that a language is written in, by CLDR's likely subtags: of "ja"
    ("Han", "Hiragana", "Katakana"). Warn, and return None, if CLDR does not know the language.
    """
    import regex
    from babel.core import get_global, parse_locale

    likely = get_global("likely_subtags")
    aliases = get_global("language_aliases")
    try:
        code, territory, script, *_ = parse_locale(language.replace("-", "_"))
        code, _, own_script, *_ = parse_locale(aliases.get(code, code))
        script = (
            script
            or own_script
            or (likely.get(f"{code}_{territory}") or likely[code]).split("_")[1]
        )
        scripts = UNICODE_SCRIPTS.get(script, (script,))
        _letters(scripts)
    except (ValueError, KeyError, regex.error):
        logger.warning(
            "CLDR knows no script of language %r: its sentences are not filtered by script.",
            language,
        )
        return None
    return scripts


def digest(source, target):
    """Return 16 bytes that only equal pairs share."""
    source = source.encode("utf-8")
    return hashlib.blake2b(
        b"%d %b%b" % (len(source), source, target.encode("utf-8")), digest_size=DIGEST
    ).digest()


def usable_pairs(pairs, filters, dropped):
    """Yield (digest, source, target) of the pairs that the filters leave; count the others."""
    for source, target in pairs:
        if reason := filters.reason_to_drop(source, target):
            dropped[reason] += 1
        else:
            yield digest(source, target), source, target


def sample(pairs, size):
    """Return the `size` distinct pairs of `usable_pairs` with the least digests, sorted by digest:
    a random sample that does not depend on the order of reading.
    """
    least = {}
    bound = b"\xff" * (DIGEST + 1)
    for key, source, target in pairs:
        if key < bound:
            least[key] = source, target
        if len(least) > size + size // 4 + 1000:
            least = dict(sorted(least.items())[:size])
            bound = next(reversed(least))
    return [pair for _, pair in sorted(least.items())[:size]]
