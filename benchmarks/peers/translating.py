"""What every translating system does: load, tell how long that took, and translate the same lines
as often as it is told.

Standard library only: the systems live in environments of their own.
"""

import concurrent.futures
import itertools
import os
import pathlib
import re

from benchmarks.peers.turns import Clock


def serve(parent, load):
    """Load, translate one line, say that we are ready, and answer every order by translating all
    lines.

    The task's keys: `model`, `lines`, `source_vocabulary` and `target_vocabulary` (paths, of one
    model where the languages share it), `beam_size`, `batch_size`, `forced_length`,
    `one_at_a_time`; and what `SYSTEMS` in `benchmarks.peers.systems` adds, such as
    `spread`.

    `forced_length` is None, or the number of tokens that each translation shall have, which is the
    number of the decoder's steps. Where a search can force EOS (ours), EOS is the last of them;
    CTranslate2, Marian and OpenNMT-tf end with one word more instead.

    Args:
        parent: a `Parent`.
        load: takes the task; gives a function from lines to (translations, number of their tokens
            with EOS, or None where it is unknown).
    """
    task = parent.task
    lines = pathlib.Path(task["lines"]).read_text(encoding="utf-8").splitlines()
    began = Clock()
    translate = load(task)
    loaded = began.read()["seconds"]
    translate(lines[:1])
    first = began.read()["seconds"] - loaded
    # Since this program began. `resource` would count what started it.
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    memory = int(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1000
    batches = [[line] for line in lines] if task["one_at_a_time"] else [lines]

    def step(_):
        """Translate all lines once."""
        results = []
        latencies = []
        for batch in batches:
            own = Clock()
            results.append(translate(batch))
            latencies.append(own.read()["seconds"])
        translations = [line for translated, _ in results for line in translated]
        tokens = task["forced_length"] and len(lines) * task["forced_length"]
        if results[0][1] is not None:
            tokens = sum(count for _, count in results)
        measures = {"loaded": loaded, "first": first, "memory": memory, "latencies": latencies}
        return {**measures, "tokens": tokens, "translations": translations}

    parent.serve(step)


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def in_batches(decode, sources, lengths, batch_size, at_once=1):
    """Decode sentences of similar length together, the long ones first.

    Args:
        decode: takes a list of sources, gives as many results.
        sources: what it takes.
        lengths: how many tokens each has.
        batch_size: most sources of a batch.
        at_once: how many threads decode a batch each.

    Returns:
        A result for each source, in order.
    """
    order = sorted(range(len(sources)), key=lambda number: -lengths[number])
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    results = [None] * len(sources)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        decoded = pool.map(lambda batch: decode([sources[n] for n in batch]), batches)
        for number, result in zip(order, itertools.chain.from_iterable(decoded), strict=True):
            results[number] = result
    return results
