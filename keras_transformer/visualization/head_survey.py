"""Measures of all heads over many sentences (Vaswani et al. 2017, appendix)."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from keras_transformer.visualization.attended import STACKS, TITLES, are_shares
from keras_transformer.visualization.head_measures import MEASURES

# {measure: {stack: (N, h)}}.
Survey = dict[str, dict[str, np.ndarray]]


def survey(
    attentions: Iterable[Mapping[str, np.ndarray]], report: Callable[[str], None] = print
) -> Survey:
    """The mean of each measure over the rows of all sentences.

    Args:
        attentions: what `Translator.attention` gives, for each sentence.
        report: takes a line about a stack without weights between positions, such as that of
            low-rank attention, which is left out.

    Returns:
        {measure: {stack: numbers (N, h)}}, of the stacks that attend.

    Raises:
        ValueError: if there is no sentence, or no stack can be measured.
    """
    sums = {}
    rows = dict.fromkeys(STACKS, 0)
    left_out = set()
    for attention in attentions:
        for stack in (stack for stack in STACKS if stack in attention):
            weights = np.asarray(attention[stack], np.float64)
            if stack in left_out or not are_shares(weights):
                left_out.add(stack)
                continue
            rows[stack] += weights.shape[-2]
            for name, measure in MEASURES.items():
                of_heads = measure(weights, stack).sum(axis=-1)
                sums[name, stack] = sums.get((name, stack), 0) + of_heads
    for stack in (stack for stack in STACKS if stack in left_out):
        report(f"not measured, because it has no weights between positions: {TITLES[stack]}")
    kept = [stack for stack in STACKS if rows[stack] and stack not in left_out]
    if not kept:
        raise ValueError("there is no sentence to measure heads on. Give at least one line.")
    return {name: {stack: sums[name, stack] / rows[stack] for stack in kept} for name in MEASURES}


def table(found: Mapping[str, Mapping[str, np.ndarray]]) -> list[list[str]]:
    """Rows of text: a header, then a row for each head. A measure that a stack lacks is "-"."""
    lines = [["head", *found]]
    shapes = {stack: values.shape for one in found.values() for stack, values in one.items()}
    for stack in (stack for stack in STACKS if stack in shapes):
        for layer, head in np.ndindex(shapes[stack]):
            cells = [
                f"{of_stacks[stack][layer, head]:.2f}" if stack in of_stacks else "-"
                for of_stacks in found.values()
            ]
            lines.append([f"{stack} {layer + 1}.{head + 1}", *cells])
    return lines
