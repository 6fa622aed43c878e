"""Which pairs are not worth learning from, judged one pair at a time (Vaswani et al. 2017, section
5.1: the training data); and a sample of the others.
"""

import dataclasses
import functools
import hashlib
import logging

from pipelines.corpora.parallel_text import objection

# "OK" and "In Ordnung" translate each other, and differ fivefold in length: the ratio of lengths
# judges sentences only, of more characters than this.
SHORT = 10
DIGEST = 16
# Names and quotations in another script are common. A sentence mostly of another script is not in
# its language.
LEAST_SHARE = 0.5
# Scripts of CLDR that are several scripts of Unicode, or have another name there.
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
    """The rules by which pairs are dropped: with more characters of the longer side for each one of
    the shorter; with identical sides; and with a side of whose letters less than half are in its
    scripts of Unicode. None: any number, any script. A tag before a source is none of its text.
    """

    max_length_ratio: float | None = None
    drop_untranslated: bool = False
    source_scripts: tuple[str, ...] | None = None
    target_scripts: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()

    def reason_to_drop(self, source: str, target: str) -> str | None:
        """Why a pair is not worth learning from, or None if it is."""
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
    """Whether at least half of a text's letters are in some scripts, by Unicode's names; None: any.
    Letters that several scripts share, such as the Japanese "ー", do not count.
    """
    if scripts is None:
        return True
    inside, outside = (sum(map(len, runs.findall(text))) for runs in _letters(scripts))
    return inside * (1 - LEAST_SHARE) >= outside * LEAST_SHARE


@functools.cache
def _letters(scripts):
    """Runs of letters in some scripts, and in others."""
    import regex

    named = "".join(rf"\p{{Script={script}}}" for script in scripts)
    of_none = r"\p{Script=Common}\p{Script=Inherited}"
    return regex.compile(rf"(?V1)[\p{{L}}&&[{named}]]+"), regex.compile(
        rf"(?V1)[\p{{L}}--[{named}{of_none}]]+"
    )


def scripts_of(language: str) -> tuple[str, ...] | None:
    """The Unicode scripts that a language is written in, by CLDR's likely subtags: of "ja" ("Han",
    "Hiragana", "Katakana"). None, and a warning, if CLDR does not know the language.
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
    """16 bytes that two pairs share only if they are equal."""
    source = source.encode("utf-8")
    return hashlib.blake2b(
        b"%d %b%b" % (len(source), source, target.encode("utf-8")), digest_size=DIGEST
    ).digest()


def usable_pairs(pairs, filters, dropped):
    """The pairs that the filters leave, with digests; others are counted by reason."""
    for source, target in pairs:
        if reason := filters.reason_to_drop(source, target):
            dropped[reason] += 1
        else:
            yield digest(source, target), source, target


def sample(pairs, size):
    """The `size` different pairs, as `usable_pairs` gives them, with the least digests, in their
    order: a random sample that does not depend on the order of reading.
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
