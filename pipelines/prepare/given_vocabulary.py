"""The vocabulary that a corpus is prepared with where none is learned (Vaswani et al. 2017, section
5.1).
"""

import pathlib
from collections.abc import Sequence

from pipelines import vocabularies
from pipelines.corpora.manifest import PREPARATION, read_json
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary


def given(files: str | None, folder: pathlib.Path) -> Vocabulary | SeparateVocabularies | None:
    """Read the vocabulary of named files; if none are named, the one that lay in a folder before a
    corpus was prepared there. None if there is neither: then one is learned.

    Args:
        files: one `vocabulary.model`, or two, joined by a comma, of source and target; None.
        folder: where the corpus is prepared.
    """
    if files:
        found = vocabularies.of_files(files.split(","))
    elif vocabularies.exist(folder) and not _has_learned(folder):
        found = vocabularies.load(folder)
    else:
        return None
    if "word_pieces" in (found.source.kind, found.target.kind):
        raise ValueError(
            "`vocabulary` must be a SentencePiece model. Received: the word pieces in "
            f"{files or folder}, from which text cannot be put together again. Name a "
            "vocabulary.model, or another --output_dir."
        )
    return found


def _has_learned(folder):
    """Whether a preparation that began in a folder learns its vocabulary."""
    begun = read_json(folder / PREPARATION)
    return begun is not None and begun.get("vocabulary") != begun.get("fingerprint")


def with_tags(
    vocabulary: Vocabulary | SeparateVocabularies, tags: Sequence[str], name: str | pathlib.Path
) -> Vocabulary | SeparateVocabularies:
    """Give a vocabulary back in which each tag is one piece."""
    known = set(vocabulary.source.pieces) & set(vocabulary.target.pieces)
    if missing := sorted(set(tags) - known):
        raise ValueError(
            f"`vocabulary` must have each tag of the corpus as a piece. Received: {name} without "
            f"{', '.join(missing)}. Name a vocabulary that was learned with them, or let "
            "prepare learn one: without --vocabulary, and without vocabulary.model in --output_dir."
        )
    return vocabulary
