"""How good a parser's trees are: the figures that parsers are compared by (Vaswani et al. 2017,
section 6.3 and table 4).
"""

from collections.abc import Mapping, Sequence

from keras_transformer.evaluation.evalb_parameters import COLLINS, Parameters
from keras_transformer.evaluation.parseval import Summary, compare, summarize
from keras_transformer.evaluation.table import aligned
from pipelines.trees import Tree, parse

# Figures of a `Summary`, in percent but for the first and the last, and their headings.
FIGURES = {
    "sentences": "sentences",
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "complete": "complete match",
    "no_crossing": "no crossing",
    "average_crossing": "crossing a sentence",
}


def with_leaves_of(gold: Tree, tree: Tree) -> Tree:
    """A tree with the parts of speech and the words of the gold tree.

    Tagging is not scored, and what counts as punctuation is told by its part of speech.

    Args:
        gold: the right tree.
        tree: the parser's, over as many words; another one comes back as it is.
    """
    leaves = list(gold.preterminals())
    if len(leaves) != len(tree.words):
        return tree
    left = iter(leaves)

    def replaced(inner):
        if inner.is_preterminal:
            return next(left)
        return Tree(inner.label, tuple(map(replaced, inner.children)))

    return replaced(tree)


def measure(
    trees: Sequence[str], gold: Sequence[Tree], parameters: Parameters = COLLINS
) -> dict[str, int | dict[str, float]]:
    """Compare trees with gold trees.

    Args:
        trees: in brackets, over the words of the gold trees; "" where the parser found none.
        gold: as many.
        parameters: EVALB's.

    Returns:
        JSON: "all" and "short" have the `FIGURES` of all sentences and of those of at most "cutoff"
        words, in percent.
    """
    parsed = map(parse, trees)
    sentences = [
        compare(right, with_leaves_of(right, tree), parameters)
        for right, tree in zip(gold, parsed, strict=True)
    ]
    short = [sentence for sentence in sentences if sentence.length <= parameters.cutoff]
    return {
        "cutoff": parameters.cutoff,
        "short": _figures(summarize(short)),
        "all": _figures(summarize(sentences)),
    }


def _figures(summary: Summary):
    return {name: round(getattr(summary, name), 2) for name in FIGURES}


def table(scores: Mapping) -> str:
    """The PARSEVAL table of what `measure` gave."""
    names = {"short": f"at most {scores['cutoff']} words", "all": "all"}
    rows = [[*FIGURES.values(), "of"]]
    for name, words in names.items():
        figures = scores[name]
        numbers = [f"{figures[figure]:.2f}" for figure in FIGURES if figure != "sentences"]
        rows.append([f"{figures['sentences']:,}", *numbers, words])
    return aligned(rows)
