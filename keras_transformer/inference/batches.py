"""How the sentences of a file are shared out to batches, and batches to threads."""

import concurrent.futures
from collections.abc import Callable, Sequence

from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH

BATCH_TOKENS = 2048
# What may be done about it.
SPLIT = "Split it into sentences (translate: --split_sentences)."
SHORTEN = "Shorten it, or leave it out."
# What a line is called.
LINE = "line {}"
# What a translation that is given is called.
TARGET = "of the targets, line {}"


def checked_lengths(
    lengths_of: Callable[[list[str]], list[int]],
    lines: Sequence[str],
    named: str = LINE,
    remedy: str = SPLIT,
) -> list[int]:
    """How many tokens each line has.

    Args:
        lengths_of: gives the tokens of each of some lines.
        lines: strings.
        named: what the error calls the one of a number, from 1. The only line is "the line".
        remedy: what the error advises.

    Raises:
        ValueError: naming the first line that is longer than the model takes.
    """
    lengths = []
    for start in range(0, len(lines), MAX_SOURCE_LENGTH):
        lengths += lengths_of(lines[start : start + MAX_SOURCE_LENGTH])
    for number, length in enumerate(lengths, 1):
        if length > MAX_SOURCE_LENGTH:
            name = "the line" if (named, len(lines)) == (LINE, 1) else named.format(number)
            raise ValueError(
                f"{name} has {length:,} tokens, more than the "
                f"{MAX_SOURCE_LENGTH:,} allowed. {remedy}"
            )
    return lengths


def batches_of_tokens(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Put lines of similar length together, long ones first.

    The last batches, over which not all threads have work, are then short.

    Args:
        lengths: tokens of each line.
        batch_tokens: most tokens of a batch with padding; a longer line is a batch of its own.

    Returns:
        Lists of line numbers.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = []
    while order:
        size = max(1, batch_tokens // lengths[order[0]])
        batches.append(order[:size])
        del order[:size]
    return batches


def in_batches(
    function: Callable,
    columns: Sequence[list],
    lengths: Sequence[int],
    batch_tokens: int | None = None,
    batches_at_once: int = 1,
    report: Callable[[int], None] | None = None,
) -> list:
    """What a function of lists gives for each line, in order.

    Args:
        function: takes a list of each column, gives as many results.
        columns: lists of equal length.
        lengths: tokens of each line.
        batch_tokens, batches_at_once, report: see `Translator.translate`.
    """
    results = [None] * len(lengths)

    def work(batch):
        given = function(*([column[index] for index in batch] for column in columns))
        for index, result in zip(batch, given, strict=True):
            results[index] = result
        return len(batch)

    most = batch_tokens or min(BATCH_TOKENS, -(-sum(lengths) // batches_at_once))
    with concurrent.futures.ThreadPoolExecutor(batches_at_once) as pool:
        for done in pool.map(work, batches_of_tokens(lengths, most)):
            if report:
                report(done)
    return results
