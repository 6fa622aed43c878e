"""More characters than a vocabulary has room for (Vaswani et al. 2017, section 5.1)."""

import collections
import itertools
import logging
import re
from collections.abc import Iterator, Sequence

# SentencePiece lets no piece cross the first, and passes over lines with the second.
BOUNDARY = "\0"
UNUSABLE = "\u2585"
# These and the two ways of writing a space are no characters of pieces, or have their piece anyway.
COUNTED_OTHERWISE = (BOUNDARY, UNUSABLE, " ", "\u2581")

logger = logging.getLogger(__name__)


def without_rarest(lines: Sequence[str], room: int, tags: Sequence[str]) -> Iterator[list[str]]:
    """Lines to learn pieces from, in which `BOUNDARY` stands for tags, and for the rarest
    characters if there is no room for all.

    In the first result the others take half of the room, because a text has fewer tokens if
    frequent words are pieces than if each character is one; in the second, if there is one, for a
    text whose words leave room, all of it.

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
    characters = [character for character, _ in counts.most_common()]
    for most in [room // 2, room] if len(characters) >= room else [len(characters) + 1]:
        rare = characters[max(most - 1, 0) :]
        if rare:
            told = [f"{len(some):,}" for some in (rare, characters)]
            logger.info(
                "no room for all characters as pieces: the %s rarest of %s are left to bytes", *told
            )
        table = dict.fromkeys(map(ord, [*rare, UNUSABLE]), BOUNDARY)
        yield [line.translate(table) for line in lines]
