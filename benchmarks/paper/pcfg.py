"""A probabilistic context-free grammar, the rival of every parser in table 4 (Vaswani et al. 2017,
section 6.3): what trees are found by counting rules alone.

`python -m benchmarks.paper.pcfg --data_dir=TREES` learns one from the training trees and one from a
tenth of them (the trees that `parsing_study` draws), and scores the test trees as `evaluate`
scores a parser's. `--sentences=N` scores the first N. `--silver=FILE` scores nothing: it writes the
trees that the grammar of the tenth finds for `--count` other sentences of at most 40 words, for a
parser to learn from.

NLTK makes the rules and their probabilities: unary chains are one label, other rules are split in
two and remember their last `horizontal` children and their parent. Words that came once stand for
all that never came, by their ending and their capitals. The likeliest tree is found by CKY over
arrays, because NLTK's parser takes minutes for a sentence of ten words by so many rules. A sentence
without a tree gets a flat one.
"""

import argparse
import collections
import itertools
import math
import pathlib
import re
import time

import nltk
import numpy as np

from benchmarks.tables import print_table
from keras_transformer.evaluation.parser_score import measure
from pipelines.corpora import Treebank
from pipelines.trees import Tree

START = nltk.Nonterminal("START")
ENDING = 3
# The time of a sentence grows with the cube of its words.
MOST_WORDS = 40
FLAT = "(S (XX "
SEED = 5
COLUMNS = ("trees", "rules", "labels", "without a tree", "F1, at most 40 words", "F1", "seconds")


def signature(word: str) -> str:
    """What stands for a word that never came."""
    shape = re.sub(r"[A-Z]+", "A", re.sub(r"\d+", "0", word[:-ENDING]))
    kept = "".join(sorted({*re.findall(r"[A0-]", shape)}))
    return f"<{kept} {re.sub(r'[0-9]', '0', word[-ENDING:])}>"


def binary(tree: Tree, known: set, horizontal: int) -> nltk.Tree:
    """A tree in Chomsky's normal form, whose words are known or signatures."""
    copy = nltk.Tree.fromstring(str(tree))
    for place in copy.treepositions("leaves"):
        copy[place] = copy[place] if copy[place] in known else signature(copy[place])
    copy.collapse_unary(collapsePOS=True, collapseRoot=True)
    copy.chomsky_normal_form(horzMarkov=horizontal, vertMarkov=1)
    return copy


class Grammar:
    """The rules of trees, as arrays: parents, left and right children and log P of the binary ones,
    sorted by parents.

    Args:
        trees: to learn from.
        horizontal: how many children a split rule remembers.
    """

    def __init__(self, trees: list[Tree], horizontal: int = 1):
        counts = collections.Counter(word for tree in trees for word in tree.words)
        self.words = {word for word, count in counts.items() if count > 1}
        rules = []
        for tree in trees:
            made = binary(tree, self.words, horizontal)
            rules += [nltk.Production(START, [nltk.Nonterminal(made.label())]), *made.productions()]
        self.rules = nltk.induce_pcfg(START, rules).productions()
        self.labels = sorted({rule.lhs().symbol() for rule in self.rules if rule.lhs() != START})
        numbers = {label: number for number, label in enumerate(self.labels)}
        self.start = np.full(len(self.labels), -np.inf)
        self.leaves = collections.defaultdict(list)
        two = []
        for rule in self.rules:
            parent = numbers.get(rule.lhs().symbol())
            children = [numbers.get(getattr(one, "symbol", str)()) for one in rule.rhs()]
            if parent is None:
                self.start[children[0]] = rule.logprob() * math.log(2)
            elif len(children) == 2:
                two.append((parent, *children, rule.logprob() * math.log(2)))
            else:
                self.leaves[rule.rhs()[0]].append((parent, rule.logprob() * math.log(2)))
        *whole, logs = zip(*sorted(two), strict=True)
        self.parents, self.left, self.right = np.array(whole)
        self.logs = np.array(logs, np.float32)
        self.firsts = np.flatnonzero(np.diff(self.parents, prepend=-1))
        # Of words whose signature never came either.
        self.any_leaf = [(rule[0], 0.0) for rules in self.leaves.values() for rule in rules]

    def __len__(self) -> int:
        return len(self.logs) + sum(map(len, self.leaves.values()))

    def parse(self, words: list[str]) -> str:
        """The likeliest tree in brackets, or a flat one."""
        chart = self._chart(words)
        top = chart[0, len(words)] + self.start
        if not np.isfinite(top.max()):
            return f"(S {' '.join(f'(XX {word})' for word in words)})"
        found = self._tree(chart, words, 0, len(words), int(top.argmax()))
        found.un_chomsky_normal_form()
        return found.pformat(margin=10**9)

    def _chart(self, words):
        size = len(words)
        chart = np.full((size + 1, size + 1, len(self.labels)), -np.inf, np.float32)
        for place, word in enumerate(words):
            known = self.leaves.get(word) or self.leaves.get(signature(word)) or self.any_leaf
            for label, log in known:
                chart[place, place + 1, label] = log
        for width in range(2, size + 1):
            for begin in range(size - width + 1):
                best = self._rules(chart, begin, begin + width).max(axis=0)
                parents = self.parents[self.firsts]
                chart[begin, begin + width, parents] = np.maximum.reduceat(best, self.firsts)
        return chart

    def _rules(self, chart, begin, end):
        """Log P of each rule at each place where it may split, (splits, rules)."""
        left = chart[begin, begin + 1 : end][:, self.left]
        return left + chart[begin + 1 : end, end][:, self.right] + self.logs

    def _tree(self, chart, words, begin, end, label):
        if end == begin + 1:
            return nltk.Tree(self.labels[label], [words[begin]])
        of_label = self.parents == label
        rules = np.where(of_label, self._rules(chart, begin, end), -np.inf)
        split, rule = np.unravel_index(rules.argmax(), rules.shape)
        middle = begin + 1 + int(split)
        children = [
            self._tree(chart, words, begin, middle, self.left[rule]),
            self._tree(chart, words, middle, end, self.right[rule]),
        ]
        return nltk.Tree(self.labels[label], children)


def row(trees, gold, horizontal):
    begun = time.monotonic()
    grammar = Grammar(trees, horizontal)
    found = [grammar.parse(list(tree.words)) for tree in gold]
    scores = measure(found, gold)
    flat = sum(one.startswith(FLAT) for one in found)
    short = scores["short"]["f1"]
    seconds = round(time.monotonic() - begun)
    labels = len(grammar.labels)
    return (len(trees), len(grammar), labels, flat, short, scores["all"]["f1"], seconds)


def write_silver(path, trees, numbers, count, horizontal):
    """Write trees that the grammar of some finds for others. Those that it does not find are left
    out.
    """
    # Its flags are not those of whoever imports a grammar.
    from benchmarks.paper.parser_trainings import write_trees

    grammar = Grammar([trees[number] for number in numbers], horizontal)
    others = sorted({*range(len(trees))} - {*numbers})
    others = [number for number in others if len(trees[number].words) <= MOST_WORDS]
    order = np.random.default_rng(SEED).permutation(others)
    found = (grammar.parse(list(trees[number].words)) for number in order)
    whole = (tree for tree in found if not tree.startswith(FLAT))
    write_trees(path, itertools.islice(whole, count))


def main():
    from benchmarks.paper.parser_trainings import drawn

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True, help="folder of the treebank")
    parser.add_argument("--sentences", type=int, help="of the test trees, the first")
    parser.add_argument("--horizontal", type=int, default=1)
    parser.add_argument("--silver", type=pathlib.Path, help="file of trees to write, .gz")
    parser.add_argument("--count", type=int, default=6000, help="of these trees")
    arguments = parser.parse_args()
    treebank = Treebank(data_dir=arguments.data_dir)
    gold = treebank.trees("test")[: arguments.sentences]
    trees = treebank.trees("train")
    numbers = drawn(len(trees), len(trees) // 10)
    if arguments.silver:
        write_silver(arguments.silver, trees, numbers, arguments.count, arguments.horizontal)
        return
    tenth = [trees[number] for number in numbers]
    print_table(COLUMNS, (row(one, gold, arguments.horizontal) for one in (tenth, trees)))


if __name__ == "__main__":
    main()
