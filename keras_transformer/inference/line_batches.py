"""How lines become batches or sentences, and come back: the model was trained on pairs of sentences
(Vaswani et al. 2017, section 5.1); and the bar that says how many are done.
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
# Where only the model itself counts tokens. A text is at least as long as the shortest.
BATCH_BYTES = 8192
SHORTEST = 16
# With fewer lines the bar would be gone before it is read.
MANY_LINES = 500
# What may be done about a line that is too long.
SPLIT = "Split it into sentences (translate: --split_sentences)."
SHORTEN = "Shorten it, or leave it out."
# What a line is called, and a translation that is given.
LINE = "line {}"
TARGET = "of the targets, line {}"
# What a mixture puts before its sources: see `pipelines.corpora.mixture`.
TAG = re.compile(r"\s*(<[A-Za-z0-9_-]+>)\s+(?=\S)")


def listed(lines: Iterable[str], name: str = "lines") -> list[str]:
    """Lines as a list; a string alone, whose letters would be lines, and other types: errors."""
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
) -> list[int]:
    """How many tokens each line has, by a function of some lines. An error calls one that has too
    many as `named` says of its number, from 1 ("the line" if there is no other), and quotes it.
    """
    lengths = []
    lines = listed(lines)
    for start in range(0, len(lines), MAX_SOURCE_LENGTH):
        lengths += lengths_of(lines[start : start + MAX_SOURCE_LENGTH])
    for number, length in enumerate(lengths, 1):
        if length > most:
            name = "the line" if (named, len(lines)) == (LINE, 1) else named.format(number)
            raise ValueError(
                f"{name} has {length:,} tokens, more than the {most:,} allowed. "
                f"It begins {lines[number - 1][:40]!r}. {remedy}"
            )
    return lengths


def batches_of_tokens(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Lists of line numbers: lines of similar length together, long ones first, so that the last
    batches, over which not all threads have work, are short. A batch has at most `batch_tokens`
    with padding, or one line.
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
    """What a function of lists, one of each column, gives for each line, in order. `lengths` are in
    tokens; of the other arguments see `Translator.translate`.
    """
    for name, size in {"batch_tokens": batch_tokens, "batches_at_once": batches_at_once}.items():
        if size is not None and size < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={size}.")
    results = [None] * len(lengths)

    def work(batch):
        answers = function(*([column[index] for index in batch] for column in columns))
        for index, answer in zip(batch, answers, strict=True):
            results[index] = answer
        return len(batch)

    most = batch_tokens or min(BATCH_TOKENS, -(-sum(lengths) // batches_at_once))
    batches = batches_of_tokens(lengths, most)
    with concurrent.futures.ThreadPoolExecutor(batches_at_once) as pool:
        # A thread takes as long to start as a step of a sentence takes.
        each = pool.map if min(batches_at_once, len(batches)) > 1 else map
        for done in each(work, batches):
            if report:
                report(done)
    return results


def in_batches_of_bytes(function: Callable, texts: Sequence[str], least: int = SHORTEST) -> list:
    """What a function of texts gives for each, in order, by batches of similar length; a text
    counts as `least` bytes or more.
    """
    texts = listed(texts, "texts")
    lengths = [max(least, len(text)) for text in as_bytes(texts)]
    return in_batches(function, [texts], lengths, BATCH_BYTES)


@contextlib.contextmanager
def speed_bar(lines: int) -> Iterator[Callable[[int], None] | None]:
    """A function that takes how many more lines are done, and shows a bar; None where it cannot."""
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

        def report(done):
            [state] = bar.tasks
            # Split into sentences, a file has more than lines.
            bar.update(task, advance=done, total=max(state.total, state.completed + done))
            bar.update(task, speed=f"{state.completed / max(state.elapsed, 1e-9):.1f} sentences/s")

        yield report


def split(
    lines: Sequence[str],
    language: str,
    is_tag: Callable[[str], bool] = lambda word: False,
    spans: re.Pattern[str] | None = None,
) -> tuple[list[str], list[int]]:
    """Cut lines of a language into sentences, without surrounding white space; gives those of all
    lines, and how many each line has, 0 for a blank one. Languages that are not known get the
    common rules. A line that begins with a word that the model knows as a tag, such as "<2de>", has
    it before each of its sentences. Of what `spans` finds, none is cut or lost between two.
    """
    sentences = [_sentences(line, language, is_tag, spans) for line in lines]
    return [sentence for line in sentences for sentence in line], [len(line) for line in sentences]


def _sentences(line, language, is_tag, spans):
    # Only who splits sentences pays for the import of the rules of all languages.
    import sentencex

    match = TAG.match(line)
    tag = ""
    if match and is_tag(match[1]):
        tag = f"{match[1]} "
        line = line[match.end() :]
    found = spans.finditer(line) if spans else ()
    kept = {place for span in found for place in range(span.start() + 1, span.end() + 1)}
    ends = {*itertools.accumulate(map(len, sentencex.segment(language, line)))}
    places = itertools.pairwise(sorted(ends - kept | {0, len(line)}))
    sentences = (line[begin:end].strip() for begin, end in places)
    return [tag + sentence for sentence in sentences if sentence]


def join(sentences: Iterable[str], counts: Iterable[int]) -> list[str]:
    """The sentences of each line, joined by a space: as many strings as `counts` has numbers."""
    ahead = iter(sentences)
    return [" ".join(next(ahead) for _ in range(count)) for count in counts]
