"""Lines of several sentences to sentences and back: the model was trained on pairs of sentences
(Vaswani et al. 2017, section 5.1).
"""

import sentencex


def split(lines, language):
    """Cut lines into sentences.

    Args:
        lines: strings.
        language: ISO code of the language they are in, such as "en"; of one that is not known, the
            common rules.

    Returns:
        The sentences of all lines, without white space around them, and how many are each line's; a
        blank line has none.
    """
    sentences = [
        [sentence.strip() for sentence in sentencex.segment(language, line) if sentence.strip()]
        for line in lines
    ]
    return [sentence for line in sentences for sentence in line], [len(line) for line in sentences]


def join(sentences, counts):
    """The sentences of each line, joined by a space: as many strings as `counts` has numbers."""
    ahead = iter(sentences)
    return [" ".join(next(ahead) for _ in range(count)) for count in counts]
