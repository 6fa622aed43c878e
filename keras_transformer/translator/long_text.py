"""Lines of several sentences to sentences and back: the model was trained on pairs of sentences
(Vaswani et al. 2017, section 5.1).
"""

from collections.abc import Iterable, Sequence

import sentencex


def split(lines: Sequence[str], language: str) -> tuple[list[str], list[int]]:
    """Cut lines into sentences.

    Args:
        lines: strings.
        language: ISO code of their language, such as "en". Unknown codes get the common rules.

    Returns:
        The sentences of all lines, without surrounding white space, and the number of sentences of
        each line; 0 for a blank line.
    """
    sentences = [
        [sentence.strip() for sentence in sentencex.segment(language, line) if sentence.strip()]
        for line in lines
    ]
    return [sentence for line in sentences for sentence in line], [len(line) for line in sentences]


def join(sentences: Iterable[str], counts: Iterable[int]) -> list[str]:
    """The sentences of each line, joined by a space: as many strings as `counts` has numbers."""
    ahead = iter(sentences)
    return [" ".join(next(ahead) for _ in range(count)) for count in counts]
