"""Lines of several sentences to sentences and back: the model was trained on pairs of sentences
(Vaswani et al. 2017, section 5.1).
"""

import re
from collections.abc import Callable, Iterable, Sequence

import sentencex

# What a mixture puts before its sources: see `pipelines.corpora.mixture`.
TAG = re.compile(r"\s*(<[A-Za-z0-9_-]+>)\s+(?=\S)")


def split(
    lines: Sequence[str], language: str, is_tag: Callable[[str], bool] = lambda word: False
) -> tuple[list[str], list[int]]:
    """Cut lines into sentences.

    Args:
        lines: strings.
        language: ISO code of their language, such as "en". Unknown codes get the common rules.
        is_tag: whether the model knows a word such as "<2de>" as a tag. A line that begins with one
            has it before each of its sentences.

    Returns:
        The sentences of all lines, without surrounding white space, and the number of sentences of
        each line; 0 for a blank line.
    """
    sentences = [_sentences(line, language, is_tag) for line in lines]
    return [sentence for line in sentences for sentence in line], [len(line) for line in sentences]


def _sentences(line, language, is_tag):
    match = TAG.match(line)
    tag = ""
    if match and is_tag(match[1]):
        tag = f"{match[1]} "
        line = line[match.end() :]
    found = map(str.strip, sentencex.segment(language, line))
    return [tag + sentence for sentence in found if sentence]


def join(sentences: Iterable[str], counts: Iterable[int]) -> list[str]:
    """The sentences of each line, joined by a space: as many strings as `counts` has numbers."""
    ahead = iter(sentences)
    return [" ".join(next(ahead) for _ in range(count)) for count in counts]
