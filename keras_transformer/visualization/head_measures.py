"""Measures of attention heads (Vaswani et al. 2017, appendix: "the heads clearly learned to perform
different tasks"): where they look, whether that is in the same phrase (Marcus et al. 1993), and
what is lost without a head (Michel et al. 2019, "Are Sixteen Heads Really Better than One?").
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from keras_transformer.visualization.attended import STACKS, TITLES, are_shares
from pipelines import trees
from pipelines.corpora import treebank

# {measure: {stack: (N, h)}}.
Survey = dict[str, dict[str, np.ndarray]]
# Words, and the constituents of several words as (first word, word after the last).
Phrases = tuple[list[str], list[tuple[int, int]]]


def distance(weights: np.ndarray) -> np.ndarray:
    """sum_s w(t, s) |s - t|: how far away a row looks, in pieces. This and the measures below take
    weights (..., T, S) whose rows sum to 1, and return a number for each row, (..., T).
    """
    rows, columns = weights.shape[-2:]
    apart = np.abs(np.arange(columns)[None] - np.arange(rows)[:, None])
    return (weights * apart).sum(axis=-1)


def entropy(weights: np.ndarray) -> np.ndarray:
    """-sum_s w(t, s) ln w(t, s), in nats: 0 if one column has all, ln S if all are equal."""
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logarithms).sum(axis=-1)


def beside(weights: np.ndarray, offset: int) -> np.ndarray:
    """w(t, t + offset), or 0 without such a column; an offset of -1 means the piece before."""
    rows, columns = weights.shape[-2:]
    places = np.arange(rows) + offset
    exists = (places >= 0) & (places < columns)
    shares = np.zeros(weights.shape[:-1])
    shares[..., exists] = weights[..., np.arange(rows)[exists], places[exists]]
    return shares


# The column of EOS, or of the start token in a decoder's self-attention.
EDGES = {"encoder": -1, "decoder": 0, "cross": -1}
# Title -> measure of weights (..., T, S) and their stack.
MEASURES: dict[str, Callable[[np.ndarray, str], np.ndarray]] = {
    "distance": lambda weights, stack: distance(weights),
    "entropy": lambda weights, stack: entropy(weights),
    "on EOS, start": lambda weights, stack: weights[..., EDGES[stack]],
    "on itself": lambda weights, stack: beside(weights, 0),
    "on previous": lambda weights, stack: beside(weights, -1),
    "on next": lambda weights, stack: beside(weights, 1),
}


def survey(attentions: Iterable[Mapping[str, np.ndarray]]) -> Survey:
    """Average each measure over the rows of all sentences, given what `Translator.attention`
    returned for each. Print a line for each stack that is left out because it has no weights
    between positions, such as with low-rank attention.
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
        print(f"not measured, because it has no weights between positions: {TITLES[stack]}")
    stacks = [stack for stack in STACKS if rows[stack] and stack not in left_out]
    if not stacks:
        raise ValueError("there is no sentence to measure heads on. Give at least one line.")
    return {name: {stack: sums[name, stack] / rows[stack] for stack in stacks} for name in MEASURES}


def read_phrases(path: str, most: int) -> list[Phrases]:
    """Read the first trees of a file, and drop those without words."""
    first = itertools.islice(treebank.read_trees(path), most)
    return [phrases_of(tree) for tree in map(trees.plain, first) if tree]


def phrases_of(tree: trees.Tree) -> Phrases:
    """Return a tree's words as in the text, and the spans of constituents of several words."""
    words = [trees.unescaped(word) for word in tree.words]
    spans = {(begin, end) for _, begin, end in tree.spans() if end > begin + 1}
    return words, sorted(spans)


def together(words: int, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return which words belong to a word, booleans (words, words): all others in the smallest
    constituent around it.
    """
    belongs = np.zeros((words, words), bool)
    for word in range(words):
        around = [span for span in spans if span[0] <= word < span[1]]
        begin, end = min(around, key=lambda span: span[1] - span[0], default=(word, word))
        belongs[word, begin:end] = True
    np.fill_diagonal(belongs, False)
    return belongs


def agreement(weights: np.ndarray, belongs: np.ndarray) -> np.ndarray:
    """Return for each word 1 if the other word that it attends to most belongs to it by `together`,
    else 0: (..., words), from weights (..., words, words).
    """
    without_self = np.where(np.eye(len(belongs), dtype=bool), -np.inf, weights)
    best = without_self.argmax(axis=-1)[..., None]
    hits = np.take_along_axis(np.broadcast_to(belongs, weights.shape), best, axis=-1)
    return hits[..., 0].astype(float)


def by_chance(belongs: np.ndarray) -> np.ndarray:
    """Return the expected `agreement` if the other word is random: (words,)."""
    return belongs.sum(axis=-1) / max(len(belongs) - 1, 1)


def attentions_of(model) -> dict[str, list]:
    """Return the `MultiHeadAttention` of each layer of a `Transformer`, by stack."""
    return {
        "encoder": [layer.self_attention for layer in model.encoder.layers],
        "decoder": [layer.self_attention for layer in model.decoder.layers],
        "cross": [layer.cross_attention for layer in model.decoder.layers],
    }


@contextlib.contextmanager
def without_head(attention, head: int) -> Iterator[None]:
    """Switch off a head of a built `MultiHeadAttention` while the block runs.

    A head reaches the rest of a model only through its d_v rows of W^O. With these rows at zero the
    model computes what it would if the head returned zeros.
    """
    kernel = attention.output_kernel
    original = kernel.numpy()
    zeroed = original.copy()
    zeroed[head * attention.d_v : (head + 1) * attention.d_v] = 0
    kernel.assign(zeroed)
    try:
        yield
    finally:
        kernel.assign(original)


def losses(model, score: Callable[[], float]) -> dict[str, np.ndarray]:
    """Measure how much a model's score falls without each head, one at a time: {stack: (N, h)}.
    Useful heads have positive numbers (Michel et al. 2019, section 3.2).
    """
    full_score = score()
    lost = {}
    for stack, attentions in attentions_of(model).items():
        heads = attentions[0].num_heads
        lost[stack] = np.zeros((len(attentions), heads))
        for layer, attention in enumerate(attentions):
            for head in range(heads):
                with without_head(attention, head):
                    lost[stack][layer, head] = full_score - score()
    return lost
