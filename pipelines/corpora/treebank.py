"""Treebanks: sentences and their constituency trees (Vaswani et al. 2017, section 6.3), from files
of bracketed trees, `<data_dir>/<prefix>.trees[.gz]`.

A parser learns to translate words into the symbols of `pipelines.trees.linearization`.
"""

import os
from collections.abc import Iterable, Iterator

from pipelines.corpora.options import CORPORA, PREFIXES, CorpusOptions, Files, spread
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection
from pipelines.dropped import Dropped
from pipelines.line_files import byte_lines, decode, locate, open_bytes
from pipelines.options import option
from pipelines.trees import DamagedTree, Tree, plain, side_by_side, unescaped, without_empty_label
from pipelines.trees.linearization import LEAVES, is_symbol, to_symbols
from pipelines.vocabularies.vocabulary import SPACE

# The name of the target language.
LANGUAGE = "trees"


class TreeLeaves(CorpusOptions):
    """How trees are written."""

    tree_leaves: str | None = option(
        "xx",
        "What a parser writes for each word of the sentence: XX, its part of speech, or the "
        "word itself. Default: xx.",
        choices=tuple(LEAVES),
        is_unset=True,
    )


class Treebank(Files, TreeLeaves, name="treebank"):
    """Trees in brackets.

    Traces, indices and function tags are removed. Trees without words, with over 100,000
    characters, or with unmatched or empty brackets are dropped and counted. The corpus' tags are
    the symbols of the training split, without the words: each is one piece of the vocabulary.
    """

    @classmethod
    def languages(cls, source, target):
        return source, LANGUAGE

    def load(self):
        dropped = Dropped(strict=self.strict)
        paths = [prefix and self._path(prefix) for prefix in self.prefixes]
        splits = [self._pairs(path, dropped) if path else ParallelText([], []) for path in paths]
        texts = {text for line in splits[0].targets for text in line.split(" ")}
        tags = tuple(sorted(SPACE + text for text in texts if is_symbol(text, self.tree_leaves)))
        languages = (self.source_language, LANGUAGE)
        return Corpus("treebank", *languages, *splits, dropped=dropped, tags=tags)

    def trees(self, split: str, dropped: Dropped | None = None) -> list[Tree]:
        """Return the trees of a split's pairs, in the same order, with their parts of speech."""
        prefix = getattr(self, f"{split}_prefix")
        if prefix is None:
            return []
        dropped = Dropped() if dropped is None else dropped
        return [tree for _, tree, *_ in self._usable_trees(self._path(prefix), dropped)]

    def _path(self, prefix):
        argument = PREFIXES[self.prefixes.index(prefix)]
        return locate(self.folder("the folder with the trees"), f"{prefix}.trees", argument)

    def _pairs(self, path, dropped):
        rows = ((line, *texts) for line, _, *texts in self._usable_trees(path, dropped))
        text = ParallelText.from_rows(rows, str(path))
        if not len(text):
            raise ValueError(
                f"{path} holds no tree with words. Dropped: {dropped.describe()}. Check the file."
            )
        return text

    def _usable_trees(self, path, dropped):
        """Yield (line number, plain tree, sentence, symbols) of each usable tree."""
        for line, whole in tree_lines(_lines(path), str(path), dropped):
            tree = plain(whole)
            sentence = words_of(tree) if tree else ""
            symbols = " ".join(to_symbols(tree, self.tree_leaves)) if tree else ""
            if reason := objection(sentence, symbols):
                dropped.leave_out(reason, f"{path}, line {line}")
            else:
                yield line, tree, sentence, symbols


def treebanks_of(settings) -> list[Treebank]:
    """Return the treebanks of a corpus, by the arguments of `corpora.load` and "name": one, or all
    of a mixture. Other corpora are refused, and so are tags, which would be words of sentences.
    """
    name = settings["name"]
    if name not in ("treebank", "mixture"):
        raise ValueError(
            f"--task=parsing learns from trees. Received: corpus={name}. Pass --corpus=treebank "
            "and --data_dir, the folder of their files."
        )
    if name == "treebank":
        return [Treebank.of(spread(settings))]
    mixture = CORPORA["mixture"].of(settings)
    members = mixture.members()
    for number, member in enumerate(members, 1):
        if not isinstance(member.corpus, Treebank) or member.tag:
            raise ValueError(
                f"{mixture.mixture}, member {number}: a parser learns from treebanks without tags. "
                f"Received: {member.entry}. Leave it out, or its tag."
            )
    return [member.corpus for member in members]


def gold_trees(settings, split: str, dropped: Dropped | None = None) -> list[Tree]:
    """Return the trees of the pairs that `corpora.load` returns, in the same order."""
    banks = treebanks_of(settings)
    trees = [tree for bank in banks for tree in bank.trees(split, dropped)]
    if not trees:
        reason = f"dropped: {dropped.describe()}" if dropped else "no file is named"
        raise ValueError(
            f"the {split} split holds no tree with words: {reason}. Check it, or name another."
        )
    return trees


def read_trees(path: str | os.PathLike) -> Iterator[Tree]:
    """Read the trees of a file, gzipped if its name ends in ".gz". Damaged trees are errors."""
    return (tree for _, tree in tree_lines(_lines(path), str(path)))


def trees_of_file(path: str | os.PathLike) -> list[Tree]:
    """Read --reference_file: plain trees, without those that have no word."""
    trees = [tree for tree in map(plain, read_trees(path)) if tree]
    if not trees:
        raise ValueError(f"--reference_file={path} holds no tree with words. Name another file.")
    return trees


def words_of(tree: Tree) -> str:
    """Return the sentence of a tree: its unescaped words, joined by spaces."""
    return " ".join(map(unescaped, tree.words))


def _lines(path):
    """Yield the decoded lines of a file with their indentation."""
    with open_bytes(path) as file:
        for number, line in enumerate(byte_lines(file, path), start=1):
            yield " " * _indentation(line) + decode(line, path, number)


def tree_lines(
    lines: Iterable[str], name: str, dropped: Dropped | None = None
) -> Iterator[tuple[int, Tree]]:
    """Yield (line number, tree) for the trees of some lines. A line may hold several trees, and a
    tree several lines, all but the first indented: so a missing bracket cannot affect the next
    tree.

    Real treebanks have damaged trees, such as `(())` where a parser found none. A damaged tree is
    left out up to the next line that is not indented. `dropped` counts them; None: they are errors,
    with file, line and reason.
    """
    dropped = Dropped(strict=True) if dropped is None else dropped
    for block, end in _blocks(lines):
        trees = []
        first = block[0][0]
        try:
            for first, text in _balanced(block):
                trees += [(first, without_empty_label(tree)) for tree in side_by_side(text)]
        except DamagedTree as error:
            hint = f"; line {end}, not indented, begins another"
            hint = hint if end and error.reason == "unclosed bracket" else ""
            place = f"{name}, line {first}"
            dropped.leave_out(error.reason, place, f"{place}: {error}{hint}.")
        else:
            yield from trees


def _blocks(lines):
    """Group (number, line) into blocks that begin with a line that is not indented. Yield each with
    the number of the next block's line, None at the end. A line that begins with ")" continues a
    block. Empty lines are skipped.
    """
    block = []
    depth = 0
    for number, line in enumerate(lines, 1):
        text = line.lstrip()
        if not text:
            continue
        is_outermost = block and _indentation(line) <= _indentation(block[0][1])
        if is_outermost and (text[0] == "(" or (depth <= 0 and text[0] != ")")):
            yield block, number
            block = []
            depth = 0
        block.append((number, line))
        depth += line.count("(") - line.count(")")
    if block:
        yield block, None


def _balanced(block):
    """Split a block where its brackets are balanced. Yield (number of the first line, text)."""
    pending = []
    depth = 0
    for number, line in block:
        pending.append((number, line))
        depth += line.count("(") - line.count(")")
        if depth <= 0 or number == block[-1][0]:
            yield pending[0][0], "\n".join(text for _, text in pending)
            pending = []
            depth = 0


def _indentation(line):
    return len(line) - len(line.lstrip())
