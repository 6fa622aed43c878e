"""Heads that reach far, and heads that find what a pronoun stands for (Vaswani et al. 2017,
appendix): `python -m benchmarks.paper.head_links --model=RUN --data_dir=craft`.

For each head of the encoder of a translator from English, over the sentences of a treebank: how
often the other word that a word attends to most is more than `--far` words away, beside one that is
drawn; and how often that of a pronoun is the last noun of the nearest noun phrase that ends before
it, beside how often the head's strongest links go as many words back from any word. The trees say
no antecedents: the nearest noun phrase is often not it.
"""

import argparse
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.tables import print_table
from pipelines.trees import Tree, unescaped

PRONOUNS = ("PRP", "PRP$")
NOUN = "NN"


class Links(NamedTuple):
    """Of a sentence of n words: the other word that each attends to most, integers (N, h, n); and
    pairs of a pronoun and the noun before it.
    """

    strongest: np.ndarray
    pairs: list[tuple[int, int]]


def pronouns_with_nouns(tree: Tree) -> list[tuple[int, int]]:
    """Places of each pronoun and of the last noun of the nearest noun phrase that ends before it,
    of two nested ones that of the outer; pronouns without one are left out.
    """
    labels = [leaf.label for leaf in tree.preterminals()]
    phrases = [(end, begin) for one, begin, end in tree.spans() if one.label.startswith("NP")]
    found = []
    for place in (place for place, label in enumerate(labels) if label in PRONOUNS):
        before = [(end, -begin) for end, begin in phrases if end <= place]
        for end, begin in sorted(before, reverse=True):
            nouns = [at for at in range(-begin, end) if labels[at].startswith(NOUN)]
            if nouns:
                found.append((place, nouns[-1]))
                break
    return found


def strongest(weights: np.ndarray) -> np.ndarray:
    """The other word that each attends to most, of weights (N, h, n, n)."""
    return np.where(np.eye(weights.shape[-1], dtype=bool), -np.inf, weights).argmax(axis=-1)


def links(translator, trees: Iterable[Tree]) -> Iterable[Links]:
    """Those of sentences whose words the model's vocabulary keeps apart."""
    from keras_transformer.visualization.attended import between_words, words_of

    for tree in trees:
        words = [unescaped(word) for word in tree.words]
        attention = translator.attention(" ".join(words), "")
        read, numbers = words_of(attention["source_pieces"])
        if len(read) == len(words) + 1 and len(words) > 1:
            weights = between_words(attention["encoder"], numbers, numbers)[..., :-1, :-1]
            # One sentence: its axis goes.
            yield Links(
                strongest(weights.reshape(-1, *weights.shape[-3:])), pronouns_with_nouns(tree)
            )


def long_links(found: list[Links], far: int) -> tuple[np.ndarray, float]:
    """The share of the words whose strongest link is long, (N, h), and that of drawn ones."""
    long = [np.abs(one.strongest - np.arange(one.strongest.shape[-1])) > far for one in found]
    drawn = []
    for one in long:
        places = np.arange(one.shape[-1])
        distances = np.abs(places[:, None] - places)
        drawn.append((distances > far).sum(axis=1) / (len(places) - 1))
    return np.concatenate(long, axis=-1).mean(axis=-1), float(np.concatenate(drawn).mean())


def links_to_nouns(found: list[Links]) -> tuple[np.ndarray, np.ndarray, int]:
    """The share of the pronouns whose strongest link goes to their noun, (N, h); the share that
    would by where the head's links go from any word, likewise; and how many pronouns there are.
    """
    hits = []
    backs = []
    for one in found:
        for pronoun, noun in one.pairs:
            hits.append(one.strongest[..., pronoun] == noun)
            backs.append(pronoun - noun)
    by_distance = {}
    for back in {*backs}:
        # From words that have one so many words before them.
        goes = [
            one.strongest[..., back:] == np.arange(one.strongest.shape[-1] - back) for one in found
        ]
        by_distance[back] = np.concatenate(goes, axis=-1).mean(axis=-1)
    expected = np.mean([by_distance[back] for back in backs], axis=0)
    return np.mean(hits, axis=0), expected, len(hits)


def main():
    from keras_transformer import Translator
    from pipelines.corpora import Treebank

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="run of a translator from English")
    parser.add_argument("--data_dir", required=True, help="folder of the treebank")
    parser.add_argument("--sentences", type=int, help="of the test trees, the first")
    parser.add_argument("--far", type=int, default=5, help="a link over more words is long")
    arguments = parser.parse_args()
    trees = Treebank(data_dir=arguments.data_dir).trees("test")[: arguments.sentences]
    found = list(links(Translator.load(arguments.model), trees))
    if not any(one.pairs for one in found):
        raise SystemExit("no pronoun in these sentences: read more by --sentences.")
    far, drawn = long_links(found, arguments.far)
    to_nouns, expected, count = links_to_nouns(found)
    print(f"{len(found)} of {len(trees)} sentences, {count} pronouns")
    shares = np.stack([far, to_nouns, expected], axis=-1)
    rows = [
        (f"{layer + 1}.{head + 1}", *(f"{100 * one:.1f}" for one in shares[layer, head]))
        for layer, head in np.ndindex(far.shape)
    ]
    header = f"over {arguments.far} words, drawn {100 * drawn:.1f} %"
    print_table(["head", header, "pronoun to noun, %", "by distance, %"], rows)


if __name__ == "__main__":
    main()
