"""A treebank: sentences and their constituency trees (Vaswani et al. 2017, section 6.3), from files
of brackets, `<data_dir>/<prefix>.trees[.gz]`.

A parser learns it as a translation, from words into the symbols of `pipelines.trees.linearization`.
"""

import os
from collections.abc import Iterator, Sequence

from pipelines.corpora.line_files import byte_lines, decode, existing_folder, locate, open_bytes
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection
from pipelines.corpora.tree_files import read
from pipelines.dropped import Dropped
from pipelines.trees import Tree, plain, unescaped
from pipelines.trees.linearization import is_symbol, to_symbols
from pipelines.vocabularies.vocabulary import SPACE

# What a tree is called as a language.
LANGUAGE = "trees"


def load(
    source_language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefixes: Sequence[str | None] = ("train", "valid", "test"),
    leaves: str = "xx",
    strict: bool = False,
) -> Corpus:
    """Load three files of trees. All are looked for before the first is read.

    Traces, indices and function tags are removed. A tree without words, one whose line would be
    over 100,000 characters, and one whose brackets do not match or are empty is dropped and
    counted.

    Args:
        source_language: of the sentences, such as "en".
        data_dir: the folder.
        prefixes: names of the training, validation and test split; None for no trees, as a member
            of a mixture may have it.
        leaves: what stands for words, a key of `linearization.LEAVES`.
        strict: whether a damaged tree is refused.

    Returns:
        The `Corpus`: words and symbols, each joined by spaces. Its tags are the symbols of the
        training split but for words, each of which is one piece of the vocabulary.

    Raises:
        ValueError: a file that is not UTF-8 or not whole: the file, the line and what is wrong; a
            split without a tree.
        OSError: a file or folder that is missing or cannot be read.
    """
    dropped = Dropped(strict=strict)
    paths = [None if prefix is None else _path(data_dir, prefix) for prefix in prefixes]
    splits = [_pairs(path, dropped, leaves) if path else ParallelText([], []) for path in paths]
    found = {text for line in splits[0].targets for text in line.split(" ")}
    symbols = sorted(text for text in found if is_symbol(text, leaves))
    return Corpus(
        "treebank",
        source_language,
        LANGUAGE,
        *splits,
        dropped=dropped,
        tags=tuple(SPACE + symbol for symbol in symbols),
    )


def trees(
    data_dir: str | os.PathLike | None,
    prefix: str,
    leaves: str = "xx",
    dropped: Dropped | None = None,
) -> list[Tree]:
    """The trees of a split that `load` gives pairs of by the same `leaves`, in the same order, with
    their parts of speech. Those that it drops are counted.
    """
    dropped = Dropped() if dropped is None else dropped
    return [tree for _, tree, *_ in _kept(_path(data_dir, prefix), dropped, leaves)]


def read_trees(path: str | os.PathLike) -> Iterator[Tree]:
    """Read the trees of a file, gzipped if its name ends in ".gz": `tree_files.read`.

    Raises:
        ValueError: a file that is not UTF-8, not whole, or whose brackets do not match: the file,
            the line and what is wrong.
        OSError: the file is missing or cannot be read.
    """
    with open_bytes(path) as file:
        yield from (tree for _, tree in read(_lines(file, path), str(path)))


def _lines(file, path):
    """Decoded lines with the white space that they begin with."""
    for number, line in enumerate(byte_lines(file, path), start=1):
        indentation = len(line) - len(line.lstrip())
        yield " " * indentation + decode(line, path, number)


def words_of(tree: Tree) -> str:
    """The sentence of a tree: its words as in a text, joined by spaces."""
    return " ".join(map(unescaped, tree.words))


def _path(data_dir, prefix):
    if not data_dir:
        raise ValueError(
            "Corpus treebank needs `data_dir`, the folder with the files of trees. Received: "
            f"{data_dir!r}. Pass --data_dir=FOLDER."
        )
    if not prefix:
        raise ValueError(
            "`prefixes` must name the files of trees. Received: an empty name. Name them by "
            "--train_prefix, --valid_prefix and --test_prefix; a member of a mixture may have null "
            "for no trees."
        )
    return locate(existing_folder(data_dir), f"{prefix}.trees", "prefixes")


def _pairs(path, dropped, leaves):
    kept = _kept(path, dropped, leaves)
    rows = ((line, sentence, symbols) for line, _, sentence, symbols in kept)
    text = ParallelText.from_rows(rows, str(path))
    if not len(text):
        raise ValueError(
            f"{path} holds no tree with words. Dropped: {dropped.describe()}. Check the file."
        )
    return text


def _kept(path, dropped, leaves):
    """Each tree that is kept, plain, with its line before it, and its sentence and its symbols."""
    with open_bytes(path) as file:
        for line, whole in read(_lines(file, path), str(path), dropped):
            tree = plain(whole)
            sentence = words_of(tree) if tree else ""
            symbols = " ".join(to_symbols(tree, leaves)) if tree else ""
            if reason := objection(sentence, symbols):
                dropped.count(reason, f"{path}, line {line}")
            else:
                yield line, tree, sentence, symbols
