"""Labelled bracketing of constituency trees (Vaswani et al. 2017, section 6.3 and table 4), counted
as EVALB counts it.

    recall = matched / gold brackets,  precision = matched / brackets of the parser
    F1 = 2 recall precision / (recall + precision)

A bracket is a label and the words that it spans; parts of speech are none. What a parameter file
says is left out first: punctuation, the root.

References: Black et al. 1991, "A Procedure for Quantitatively Comparing the Syntactic Coverage of
    English Grammars"; Sekine and Collins 1997, the program EVALB.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.trees import Tree, plain_label


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is left out, and what counts as equal: an EVALB parameter file.

    Attributes:
        labeled: whether labels count.
        cutoff: the summary of short sentences is of those of at most so many words.
        deleted: labels that are left out: a part of speech with its word, another label without
            what stands inside.
        deleted_for_length: parts of speech whose words do not count for the length.
        equal_labels, equal_words: pairs that are taken for one.
    """

    labeled: bool = True
    cutoff: int = 40
    deleted: frozenset[str] = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
    deleted_for_length: frozenset[str] = frozenset({"-NONE-"})
    equal_labels: frozenset[frozenset[str]] = frozenset({frozenset({"ADVP", "PRT"})})
    equal_words: frozenset[frozenset[str]] = frozenset()


# Those of EVALB's file COLLINS.prm, with which results on the Penn Treebank are reported.
COLLINS = Parameters()


# What a line may begin with, and how many values follow.
KEYS = {
    "DEBUG": 1,
    "MAX_ERROR": 1,
    "CUTOFF_LEN": 1,
    "LABELED": 1,
    "DELETE_LABEL": 1,
    "DELETE_LABEL_FOR_LENGTH": 1,
    "QUOTE_LABEL": 1,
    "EQ_LABEL": 2,
    "EQ_WORD": 2,
}


def read_parameters(text: str, name: str) -> Parameters:
    """Read an EVALB parameter file.

    DEBUG, MAX_ERROR and QUOTE_LABEL are passed over: quotation marks are equal only if their tags
    are. A comment begins with "#", at the beginning of a line or after its values: "DELETE_LABEL
    #" leaves out the tag #.
    """
    said = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, *values = line.split() or ["#"]
        if not key.startswith("#"):
            count = KEYS.get(key, 0)
            comment = "".join(values[count:])
            is_number = key != "CUTOFF_LEN" or "".join(values[:count]).isdecimal()
            if not 0 < count <= len(values) or comment[:1] not in ("", "#") or not is_number:
                raise ValueError(f"{name}, line {number}: {line.strip()!r} is no line of EVALB's.")
            said.setdefault(key, []).append(values[:count])
    return Parameters(
        labeled=said.get("LABELED", [["1"]])[-1] != ["0"],
        cutoff=int(said.get("CUTOFF_LEN", [["40"]])[-1][0]),
        deleted=frozenset(label for [label] in said.get("DELETE_LABEL", [])),
        deleted_for_length=frozenset(label for [label] in said.get("DELETE_LABEL_FOR_LENGTH", [])),
        equal_labels=frozenset(map(frozenset, said.get("EQ_LABEL", []))),
        equal_words=frozenset(map(frozenset, said.get("EQ_WORD", []))),
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
    """What EVALB prints of a sentence.

    Attributes:
        length: words, without those of `deleted_for_length`.
        status: one of `Status`: ERROR if the words differ, SKIPPED if the parser's tree is missing
            or has no words that count.
        matched, gold, test: brackets.
        crossing: the parser's brackets that cross one of gold.
        words: that are tagged.
        tags: of the parser's tags, those that are right.
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
    """The parts of speech, as they are, and words that are not left out."""
    pairs = [(part.label, part.children[0]) for part in tree.preterminals()]
    return [(label, word) for label, word in pairs if label not in parameters.deleted]


def brackets(tree: Tree, parameters: Parameters = COLLINS) -> list[Bracket]:
    """The brackets of a tree that count, by the words that count. One without words is left out."""
    spans = tree.spans(lambda part: part.label not in parameters.deleted)
    found = [Bracket(plain_label(inner.label), begin, end) for inner, begin, end in spans]
    return [
        bracket
        for bracket in found
        if bracket.end > bracket.begin and bracket.label and bracket.label not in parameters.deleted
    ]


def are_equal(ours: str, theirs: str, pairs: frozenset[frozenset[str]]) -> bool:
    """Whether two labels or words are one, or a pair that is taken for one."""
    return ours == theirs or frozenset({ours, theirs}) in pairs


def _matched(gold, test, parameters):
    """How many brackets of the parser have a fellow in gold; each fellow is taken once."""
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


@dataclasses.dataclass(frozen=True)
class Summary:
    """Figures of many sentences: four counts; and of the valid ones, in percent but for
    `average_crossing`, labelled brackets, sentences all of whose brackets are right, crossing
    brackets a sentence, sentences with so few, and words whose part of speech is right.
    """

    sentences: int
    errors: int
    skipped: int
    valid: int
    recall: float
    precision: float
    f1: float
    complete: float
    average_crossing: float
    no_crossing: float
    two_or_less_crossing: float
    tagging: float


def summarize(sentences: Sequence[Sentence]) -> Summary:
    """Add sentences up; a figure without anything to count is 0."""
    valid = [sentence for sentence in sentences if sentence.status == Status.VALID]
    matched = sum(sentence.matched for sentence in valid)
    recall = _percent(matched, sum(sentence.gold for sentence in valid))
    precision = _percent(matched, sum(sentence.test for sentence in valid))
    crossing = [sentence.crossing for sentence in valid]
    return Summary(
        sentences=len(sentences),
        errors=sum(sentence.status == Status.ERROR for sentence in sentences),
        skipped=sum(sentence.status == Status.SKIPPED for sentence in sentences),
        valid=len(valid),
        recall=recall,
        precision=precision,
        f1=2 * recall * precision / (recall + precision) if matched else 0.0,
        complete=_percent(sum(sentence.is_complete for sentence in valid), len(valid)),
        average_crossing=sum(crossing) / max(len(valid), 1),
        no_crossing=_percent(sum(count == 0 for count in crossing), len(valid)),
        two_or_less_crossing=_percent(sum(count <= 2 for count in crossing), len(valid)),
        tagging=_percent(
            sum(sentence.tags for sentence in valid), sum(sentence.words for sentence in valid)
        ),
    )


def _percent(part, whole):
    return 100.0 * part / whole if whole else 0.0
