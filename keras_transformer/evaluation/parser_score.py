"""Scores of parsers (Vaswani et al. 2017, section 6.3 and table 4)."""

import dataclasses
from collections.abc import Mapping, Sequence

from keras_transformer.evaluation.parseval import (
    COLLINS,
    Parameters,
    Status,
    are_equal,
    compare,
    summarize,
)
from keras_transformer.evaluation.table import aligned
from pipelines.trees import WORD, Tree, fold, parse

# Figures of `summarize` and their headings. All but the first and the last are in percent.
FIGURES = {
    "sentences": "sentences",
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "complete": "complete match",
    "no_crossing": "no crossing",
    "average_crossing": "crossing a sentence",
}
# Figures that are printed only if they are not 0. Tagging is for parsers that tag parts of speech.
RARE = {"errors": "errors", "skipped": "skipped", "tagging": "tagging"}


def with_leaves_of(gold: Tree, tree: Tree) -> Tree:
    """Return a tree with the gold tree's words and parts of speech.

    A word's part of speech decides whether it counts as punctuation.
    """
    leaves = list(gold.preterminals())
    if len(leaves) != len(tree.words):
        return tree
    left = iter(leaves)
    return fold(
        tree,
        lambda inner, children: (
            next(left) if inner.is_preterminal else Tree(inner.label, tuple(children))
        ),
    )


def measure(
    trees: Sequence[str], gold: Sequence[Tree], parameters: Parameters = COLLINS
) -> dict[str, int | dict[str, float]]:
    """Compare trees in brackets, "" where the parser found none, with as many gold trees. "all" and
    "short" have the `FIGURES` of all sentences, and of those of at most "cutoff" words; the numbers
    of "errors" and "skipped" sentences; and "tagging", in percent, if a tree has a part of speech
    other than XX. The parameters are EVALB's.
    """
    parsed = list(map(parse, trees))
    sentences = [
        _compared(truth, tree, parameters) for truth, tree in zip(gold, parsed, strict=True)
    ]
    short = [sentence for sentence in sentences if sentence.length <= parameters.cutoff]
    is_tagged = any(leaf.label != WORD for tree in parsed for leaf in tree.preterminals())
    names = [*FIGURES, "errors", "skipped", *["tagging"] * is_tagged]
    return {
        "cutoff": parameters.cutoff,
        "short": _figures(summarize(short), names),
        "all": _figures(summarize(sentences), names),
    }


def _compared(gold, tree, parameters):
    """Compare brackets by the gold tree's parts of speech, and tags by the parser's own."""
    sentence = compare(gold, with_leaves_of(gold, tree), parameters)
    if sentence.status != Status.VALID or len(tree.words) != len(gold.words):
        return sentence
    right = sum(
        are_equal(ours.label, theirs.label, parameters.equal_labels)
        for ours, theirs in zip(gold.preterminals(), tree.preterminals(), strict=True)
        if ours.label not in parameters.deleted
    )
    return dataclasses.replace(sentence, tags=right)


def _figures(summary: Mapping, names):
    return {name: round(summary[name], 2) for name in names}


def table(scores: Mapping) -> str:
    """Return the PARSEVAL table of the scores of `measure`."""
    names = {"short": f"at most {scores['cutoff']} words", "all": "all"}
    rare = {name: heading for name, heading in RARE.items() if scores["all"].get(name)}
    shown = FIGURES | rare
    rows = [[*shown.values(), "of"]]
    for name, words in names.items():
        values = [scores[name][figure] for figure in shown]
        cells = [f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in values]
        rows.append([*cells, words])
    return aligned(rows)
