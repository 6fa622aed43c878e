"""The parameters of EVALB, the program that constituency parsers are scored with (Vaswani et al.
2017, table 4).
"""

import dataclasses


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

    Args:
        text: of the file.
        name: of the file, for errors.

    Raises:
        ValueError: naming the line that is not understood.
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
