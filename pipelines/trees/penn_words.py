"""Raw text to the words of the Penn Treebank (Marcus et al. 1993), which a parser learned from."""

from collections.abc import Iterable


def split_words(lines: Iterable[str]) -> list[str]:
    """Split each line into words and punctuation, by nltk's tokenizer.

    A line is one sentence. Quotes become `` and '', and "can't" the words "ca" and "n't".

    Returns:
        For each line its words, joined by spaces.

    Raises:
        ValueError: if nltk is not installed.
    """
    try:
        from nltk.tokenize import TreebankWordTokenizer
    except ModuleNotFoundError as error:
        raise ValueError(
            "--raw_text needs nltk, which is not installed: pip install "
            "'keras-transformer-nmt[parsing]'"
        ) from error
    tokenizer = TreebankWordTokenizer()
    return [" ".join(tokenizer.tokenize(line)) for line in lines]
