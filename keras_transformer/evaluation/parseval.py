"""Labelled bracketing of constituency trees (Vaswani et al. 2017, section 6.3 and table 4), counted
as EVALB counts it.

    recall = matched / gold brackets,  precision = matched / brackets of the parser
    F1 = 2 recall precision / (recall + precision)

A bracket is a label and the words that it spans; parts of speech are none. Words and labels that a
parameter file deletes, such as punctuation and the root, are left out first.

References: Black et al. 1991, "A Procedure for Quantitatively Comparing the Syntactic Coverage of
    English Grammars"; Sekine and Collins 1997, the program EVALB.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.trees import Tree, plain_label


@dataclasses.dataclass(frozen=True)
class Parameters:
    """An EVALB parameter file: what is left out, and what counts as equal.

    Attributes:
        labeled: whether labels must match.
        cutoff: most words of a short sentence; these have a summary of their own.
        deleted: labels to leave out: a part of speech with its word, any other label alone, whose
            children stay.
        deleted_for_length: parts of speech whose words do not count for the length.
        equal_labels, equal_words: pairs that count as equal.
    """

    labeled: bool = True
    cutoff: int = 40
    deleted: frozenset[str] = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
    deleted_for_length: frozenset[str] = frozenset({"-NONE-"})
    equal_labels: frozenset[frozenset[str]] = frozenset({frozenset({"ADVP", "PRT"})})
    equal_words: frozenset[frozenset[str]] = frozenset()


# EVALB's file COLLINS.prm, by which results on the Penn Treebank are reported.
COLLINS = Parameters()


# The keys of a parameter file, and how many values follow each.
KEYS = dict.fromkeys(("DEBUG", "MAX_ERROR", "CUTOFF_LEN", "LABELED", "DELETE_LABEL"), 1)
KEYS |= {"DELETE_LABEL_FOR_LENGTH": 1, "QUOTE_LABEL": 1, "EQ_LABEL": 2, "EQ_WORD": 2}


def read_parameters(text: str, name: str) -> Parameters:
    """Read an EVALB parameter file.

    DEBUG, MAX_ERROR and QUOTE_LABEL are ignored: quotation marks are equal only if their tags are.
    A comment begins with "#", at the beginning of a line or after its values: "DELETE_LABEL #"
    leaves out the tag #.
    """
    settings = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, *values = line.split() or ["#"]
        if not key.startswith("#"):
            count = KEYS.get(key, 0)
            comment = "".join(values[count:])
            is_number = key != "CUTOFF_LEN" or "".join(values[:count]).isdecimal()
            if not 0 < count <= len(values) or comment[:1] not in ("", "#") or not is_number:
                raise ValueError(f"{name}, line {number}: {line.strip()!r} is no line of EVALB's.")
            settings.setdefault(key, []).append(values[:count])
    uncounted = settings.get("DELETE_LABEL_FOR_LENGTH", [])
    return Parameters(
        labeled=settings.get("LABELED", [["1"]])[-1] != ["0"],
        cutoff=int(settings.get("CUTOFF_LEN", [["40"]])[-1][0]),
        deleted=frozenset(label for [label] in settings.get("DELETE_LABEL", [])),
        deleted_for_length=frozenset(label for [label] in uncounted),
        equal_labels=frozenset(map(frozenset, settings.get("EQ_LABEL", []))),
        equal_words=frozenset(map(frozenset, settings.get("EQ_WORD", []))),
    )


class Bracket(NamedTuple):
    """A label and the words from `begin` to before `end`."""

    label: str
    begin: int
    end: int


class Status:
    """Whether a sentence counts: EVALB's column "Stat."."""

    VALID = 0
    ERROR = 1
    SKIPPED = 2


@dataclasses.dataclass(frozen=True)
class Sentence:
    """The figures that EVALB prints for a sentence.

    Attributes:
        length: words, without those of `deleted_for_length`.
        status: one of `Status`: ERROR if the words differ, SKIPPED if the parser's tree is missing
            or has no words that count.
        matched, gold, test: numbers of brackets: equal ones, the gold tree's, the parser's.
        crossing: the number of the parser's brackets that cross a gold one.
        words: the number of tagged words.
        tags: the number of the parser's tags that are right.
    """

    length: int
    status: int = Status.VALID
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all brackets are right and none is missing."""
        return self.matched == self.gold == self.test


def compare(gold: Tree, test: Tree | None, parameters: Parameters = COLLINS) -> Sentence:
    """Compare a parser's tree with the gold tree."""
    length = sum(tree.label not in parameters.deleted_for_length for tree in gold.preterminals())
    gold_tags = _tagged(gold, parameters)
    test_tags = _tagged(test, parameters) if test else []
    if not test_tags:
        return Sentence(length, Status.SKIPPED, words=len(gold_tags))
    if len(gold_tags) != len(test_tags) or not all(
        are_equal(ours, theirs, parameters.equal_words)
        for (_, ours), (_, theirs) in zip(gold_tags, test_tags, strict=True)
    ):
        return Sentence(length, Status.ERROR, words=len(gold_tags))
    gold_brackets = brackets(gold, parameters)
    test_brackets = brackets(test, parameters)
    return Sentence(
        length,
        matched=_matched(gold_brackets, test_brackets, parameters),
        gold=len(gold_brackets),
        test=len(test_brackets),
        crossing=sum(
            any(
                right.begin < ours.begin < right.end < ours.end
                or ours.begin < right.begin < ours.end < right.end
                for right in gold_brackets
            )
            for ours in test_brackets
        ),
        words=len(gold_tags),
        tags=sum(
            are_equal(ours, theirs, parameters.equal_labels)
            for (ours, _), (theirs, _) in zip(gold_tags, test_tags, strict=True)
        ),
    )


def _tagged(tree, parameters):
    """Return pairs of unchanged part of speech and word, without those that are left out."""
    pairs = [(part.label, part.children[0]) for part in tree.preterminals()]
    return [(label, word) for label, word in pairs if label not in parameters.deleted]


def brackets(tree: Tree, parameters: Parameters = COLLINS) -> list[Bracket]:
    """Return the brackets of a tree that count, by positions among the words that count."""
    spans = tree.spans(lambda part: part.label not in parameters.deleted)
    labelled = [Bracket(plain_label(inner.label), begin, end) for inner, begin, end in spans]
    return [
        bracket
        for bracket in labelled
        if bracket.end > bracket.begin and bracket.label and bracket.label not in parameters.deleted
    ]


def are_equal(ours: str, theirs: str, pairs: frozenset[frozenset[str]]) -> bool:
    """Whether two labels or words are the same, or a pair that counts as equal."""
    return ours == theirs or frozenset({ours, theirs}) in pairs


def _matched(gold, test, parameters):
    """Count the pairs of equal brackets of the two trees. Each bracket is in at most one pair."""
    left = list(test)
    matched = 0
    for ours in gold:
        for theirs in left:
            same = not parameters.labeled or are_equal(
                ours.label, theirs.label, parameters.equal_labels
            )
            if same and ours[1:] == theirs[1:]:
                left.remove(theirs)
                matched += 1
                break
    return matched


def summarize(sentences: Sequence[Sentence]) -> dict[str, float]:
    """Add sentences up. The first four figures are counts. The others are of the valid sentences,
    and in percent, but for `average_crossing`, the crossing brackets a sentence; 0 with nothing to
    count. `complete` is the share of sentences whose brackets are all right, `tagging` of words
    whose tag is right.
    """
    valid = [sentence for sentence in sentences if sentence.status == Status.VALID]
    matched = sum(sentence.matched for sentence in valid)
    recall = _percent(matched, sum(sentence.gold for sentence in valid))
    precision = _percent(matched, sum(sentence.test for sentence in valid))
    crossing = [sentence.crossing for sentence in valid]
    words = sum(sentence.words for sentence in valid)
    return {
        "sentences": len(sentences),
        "errors": sum(sentence.status == Status.ERROR for sentence in sentences),
        "skipped": sum(sentence.status == Status.SKIPPED for sentence in sentences),
        "valid": len(valid),
        "recall": recall,
        "precision": precision,
        "f1": 2 * recall * precision / (recall + precision) if matched else 0.0,
        "complete": _percent(sum(sentence.is_complete for sentence in valid), len(valid)),
        "average_crossing": sum(crossing) / max(len(valid), 1),
        "no_crossing": _percent(sum(count == 0 for count in crossing), len(valid)),
        "two_or_less_crossing": _percent(sum(count <= 2 for count in crossing), len(valid)),
        "tagging": _percent(sum(sentence.tags for sentence in valid), words),
    }


def _percent(part, whole):
    return 100.0 * part / whole if whole else 0.0
