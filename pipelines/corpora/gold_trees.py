"""The trees that a parser is measured by: those of a treebank, or of a mixture of them (Vaswani et
al. 2017, section 6.3: trees of the Wall Street Journal, and more that another parser made).
"""

from collections.abc import Mapping

from pipelines.corpora import treebank
from pipelines.corpora.mixture import members
from pipelines.dropped import Dropped
from pipelines.trees import Tree

SPLITS = ("train", "valid", "test")


def check(settings: Mapping) -> None:
    """Refuse a corpus that is not of trees.

    Args:
        settings: the keywords of `corpora.load`, "name" among them.

    Raises:
        ValueError: if it is of text, or a member of the mixture is, or has a tag, which would be a
            word of each sentence.
    """
    if settings["name"] not in TREEBANKS:
        raise ValueError(
            f"--task=parsing learns from trees. Received: corpus={settings['name']}. Pass "
            "--corpus=treebank and --data_dir, the folder of their files."
        )
    for number, member in enumerate(TREEBANKS[settings["name"]](settings), 1):
        if member.get("corpus", "treebank") != "treebank" or "tag" in member:
            raise ValueError(
                f"{settings['mixture']}, member {number}: a parser learns from treebanks without "
                f"tags. Received: {member}. Leave it out, or its tag."
            )


def trees(settings: Mapping, split: str, dropped: Dropped | None = None) -> list[Tree]:
    """The trees that `corpora.load` gives pairs of, in the same order, with their parts of speech.

    Args:
        settings: as in `check`; "tree_leaves" says with which leaves they were loaded.
        split: "train", "valid" or "test".
        dropped: counts the trees that `corpora.load` drops.
    """
    found = []
    leaves = settings.get("tree_leaves") or "xx"
    for member in TREEBANKS[settings["name"]](settings):
        prefix = member.get("prefixes", SPLITS)[SPLITS.index(split)]
        if prefix is not None:
            found += treebank.trees(member.get("data_dir"), prefix, leaves, dropped)
    return found


# By the corpus: a function of its settings that gives those of its treebanks.
TREEBANKS = {
    "treebank": lambda settings: [settings],
    "mixture": lambda settings: members(settings["mixture"]),
}
