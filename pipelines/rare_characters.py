"""A text with more characters than a vocabulary may have pieces (Vaswani et al. 2017, section 5.1)."""

import collections
import itertools
import logging
import re
from collections.abc import Sequence

# SentencePiece lets no piece cross the first, and passes over lines with the second.
BOUNDARY = "\0"
UNUSABLE = "\u2585"
# These and the two ways of writing a space are no characters of pieces, or have their piece anyway.
COUNTED_OTHERWISE = (BOUNDARY, UNUSABLE, " ", "\u2581")

logger = logging.getLogger(__name__)


def without_rarest(lines: Sequence[str], room: int, tags: Sequence[str]) -> list[str]:
    """Lines to learn pieces from, in which `BOUNDARY` stands for tags, and for the rarest
    characters if there is no room for all. The others take half of the room: a text has fewer
    tokens if frequent words are pieces than if each character is one.

    Args:
        lines: text.
        room: most pieces of text, one of them the space.
        tags: of the vocabulary.
    """
    if tags:
        pattern = re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))))
        lines = [pattern.sub(BOUNDARY, line) for line in lines]
    counts = collections.Counter(itertools.chain.from_iterable(lines))
    for character in COUNTED_OTHERWISE:
        del counts[character]
    rare = []
    if len(counts) >= room:
        rare = [character for character, _ in counts.most_common()][max(room // 2 - 1, 0) :]
        logger.info(
            "no room for all characters as pieces: the %s rarest of %s are left to bytes",
            *(f"{count:,}" for count in (len(rare), len(counts))),
        )
    table = dict.fromkeys(map(ord, [*rare, UNUSABLE]), BOUNDARY)
    return [line.translate(table) for line in lines]
