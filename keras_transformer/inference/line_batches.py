"""Cut lines into sentences, which the model was trained on (Vaswani et al. 2017, section 5.1), sort
them into batches, and restore their order; with a progress bar.
"""

import concurrent.futures
import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.saved_models.signature import as_bytes

BATCH_TOKENS = 2048
# Bytes in a batch of texts whose tokens only the model counts, and the least that a text counts as.
BATCH_BYTES = 8192
SHORTEST = 16
# With fewer lines, the bar would disappear before anyone reads it.
MANY_LINES = 500
# Remedies for a line that is too long.
SPLIT = "Split it into sentences (translate: --split_sentences)."
SHORTEN = "Shorten it, or leave it out."
# What errors call a line, and a reference.
LINE = "line {}"
TARGET = "of the targets, line {}"
# The tag that a mixture puts before its sources: see `pipelines.corpora.mixture`.
TAG = re.compile(r"\s*(<[A-Za-z0-9_-]+>)\s+(?=\S)")


def listed(lines: Iterable[str], name: str = "lines") -> list[str]:
    """Return lines as a list. Refuse a single string, whose letters would be lines."""
    lines = list(lines) if isinstance(lines, Iterable) and not isinstance(lines, str) else lines
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError(
            f'`{name}` must be a list of strings, such as ["A line."]. Received: {lines!r:.80}.'
        )
    return lines


def checked_lengths(
    lengths_of: Callable[[list[str]], list[int]],
    lines: Sequence[str],
    named: str = LINE,
    remedy: str = SPLIT,
    most: int = MAX_SOURCE_LENGTH,
    numbers: Sequence[int] | None = None,
) -> list[int]:
    """Return each line's number of tokens, counted by `lengths_of`. An error about a line of more
    than `most` quotes it, and calls it `named` with its number, by default from 1, or "the line".
    """
    lengths = []
    lines = listed(lines)
    for start in range(0, len(lines), MAX_SOURCE_LENGTH):
        lengths += lengths_of(lines[start : start + MAX_SOURCE_LENGTH])
    numbers = numbers or range(1, len(lines) + 1)
    for place, line, length in zip(numbers, lines, lengths, strict=True):
        if length > most:
            name = "the line" if (named, len(lines), place) == (LINE, 1, 1) else named.format(place)
            raise ValueError(
                f"{name} has {length:,} tokens, more than the {most:,} allowed. "
                f"It begins {line[:40]!r}. {remedy}"
            )
    return lengths


def batches_of_tokens(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Return batches, lists of indices of lines of similar length. A batch has at most
    `batch_tokens`, padding included, or one line. Long ones come first: at the end some threads
    are idle, so the last batches should be short.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = []
    start = 0
    while start < len(order):
        size = max(1, batch_tokens // lengths[order[start]])
        batches.append(order[start : start + size])
        start += size
    return batches


def in_batches(
    function: Callable,
    columns: Sequence[list],
    lengths: Sequence[int],
    batch_tokens: int | None = None,
    batches_at_once: int = 1,
    report: Callable[[int], None] | None = None,
) -> list:
    """Call a function of lists, one a column, on batches of lines, and return its results in the
    order of the lines. `lengths` are in tokens; see `Translator.translate` for the other arguments.
    """
    for name, size in {"batch_tokens": batch_tokens, "batches_at_once": batches_at_once}.items():
        if size is not None and not (hasattr(size, "__index__") and size >= 1):
            raise ValueError(f"`{name}` must be an integer, at least 1. Received: {name}={size}.")
    results = [None] * len(lengths)

    def work(batch):
        answers = function(*([column[index] for index in batch] for column in columns))
        for index, answer in zip(batch, answers, strict=True):
            results[index] = answer
        return len(batch)

    most = batch_tokens or min(BATCH_TOKENS, -(-sum(lengths) // batches_at_once))
    batches = batches_of_tokens(lengths, most)
    with concurrent.futures.ThreadPoolExecutor(batches_at_once) as pool:
        # Starting a thread takes as long as decoding a token of a sentence.
        run = pool.map if min(batches_at_once, len(batches)) > 1 else map
        for lines in run(work, batches):
            if report:
                report(lines)
    return results


def in_batches_of_bytes(function: Callable, texts: Sequence[str], least: int = SHORTEST) -> list:
    """Call a function of texts on batches of similar length, and return its results in the order of
    the texts. A text counts as at least `least` bytes.
    """
    texts = listed(texts, "texts")
    lengths = [max(least, len(text)) for text in as_bytes(texts)]
    return in_batches(function, [texts], lengths, BATCH_BYTES)


@contextlib.contextmanager
def speed_bar(lines: int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that advances a progress bar; None if there are few lines or no terminal."""
    if lines < MANY_LINES or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[speed]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=lines, speed="")

        def report(count):
            [state] = bar.tasks
            # Lines that are split have more sentences than the total.
            bar.update(task, advance=count, total=max(state.total, state.completed + count))
            bar.update(task, speed=f"{state.completed / max(state.elapsed, 1e-9):.1f} sentences/s")

        yield report


def split(
    lines: Sequence[str],
    language: str,
    is_tag: Callable[[str], bool] = lambda word: False,
    spans: re.Pattern[str] | None = None,
) -> tuple[list[str], list[int]]:
    """Cut lines of a language into sentences, stripped of white space. Return the sentences of all
    lines, and the number of each line, 0 for a blank one. Unknown languages get the common rules.
    If a line begins with a tag of the model, such as "<2de>", each of its sentences does. No match
    of `spans` is cut, or lost between two sentences.
    """
    sentences = [_sentences(line, language, is_tag, spans) for line in lines]
    return [sentence for line in sentences for sentence in line], [len(line) for line in sentences]


def _sentences(line, language, is_tag, spans):
    # Imported here, since it loads the rules of all languages.
    import sentencex

    match = TAG.match(line)
    tag = ""
    if match and is_tag(match[1]):
        tag = f"{match[1]} "
        line = line[match.end() :]
    matches = spans.finditer(line) if spans else ()
    within = {place for span in matches for place in range(span.start() + 1, span.end() + 1)}
    ends = {*itertools.accumulate(map(len, sentencex.segment(language, line)))}
    bounds = itertools.pairwise(sorted(ends - within | {0, len(line)}))
    sentences = (line[begin:end].strip() for begin, end in bounds)
    return [tag + sentence for sentence in sentences if sentence]


def join(sentences: Iterable[str], counts: Iterable[int]) -> list[str]:
    """Join the sentences of each line by a space. `counts` has the number of each line."""
    remaining = iter(sentences)
    return [" ".join(next(remaining) for _ in range(count)) for count in counts]
