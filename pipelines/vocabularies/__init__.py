"""The vocabulary of two languages: shared by both, as in the paper, or one per language (Vaswani et
al. 2017, section 5.1); or the word pieces of an imported model.

Each kind has a `source` and a `target` `Vocabulary`; a shared one is its own source and target. So
callers take the side that they need, and need not ask which kind it is.
"""

import dataclasses
import itertools
import logging
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence

import sentencepiece

from pipelines.special_ids import UNK
from pipelines.vocabularies import vocabulary
from pipelines.vocabularies.protected_spans import FILE, ProtectedSpans
from pipelines.vocabularies.vocabulary import RESERVED, SPACE, Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

logger = logging.getLogger(__name__)

# The files of source and target, by kind.
FILES = {
    "joint": ("vocabulary.model", "vocabulary.model"),
    "separate": ("vocabulary.source.model", "vocabulary.target.model"),
    "word_pieces": ("vocabulary.json", "vocabulary.json"),
}
# Loaders by the suffix of a file.
READERS = {".model": Vocabulary.load, ".json": WordPieces.load}


@dataclasses.dataclass(eq=False)
class SeparateVocabularies:
    """A vocabulary for each language, of equal size, because a model has one V."""

    source: Vocabulary
    target: Vocabulary
    protected: ProtectedSpans | None = None
    kind = "separate"

    def __post_init__(self):
        if self.source.size != self.target.size:
            raise ValueError(
                "vocabularies of source and target must have the same number of pieces. Received: "
                f"{self.source.size} and {self.target.size}. Learn both with one --vocabulary_size."
            )

    @property
    def size(self) -> int:
        """V, the number of pieces in each."""
        return self.source.size

    @property
    def shares_ids(self) -> bool:
        """Whether an id means the same piece on both sides, so that they may share embeddings."""
        return self.source.pieces == self.target.pieces

    @property
    def fingerprint(self) -> str:
        """The fingerprints of source and target, joined by "-"."""
        return f"{self.source.fingerprint}-{self.target.fingerprint}"


def learn(
    sources: Iterable[str],
    targets: Iterable[str],
    kind: str,
    size: int,
    tags: Iterable[str] = (),
    model_type: str = "bpe",
    protected: ProtectedSpans | None = None,
) -> Vocabulary | SeparateVocabularies:
    """Learn a "joint" or "separate" vocabulary from the training text with `vocabulary.learn`. If
    one language's text yields fewer pieces, both vocabularies get that smaller size. Marks must
    already stand in the text for protected spans.
    """
    tags = [*tags, *(protected.pieces if protected else ())]
    lines = {}
    for name, side in zip(FILES[kind], (sources, targets), strict=True):
        lines[name] = [*lines.get(name, ()), *side]
    while True:
        learned = [vocabulary.learn(lines[name], size, tags, model_type) for name in lines]
        sizes = {side.size for side in learned}
        if len(sizes) == 1:
            break
        size = min(sizes)
        logger.info("%s pieces a language: a model needs as many of each", f"{size:,}")
    both = learned[0] if kind == "joint" else SeparateVocabularies(*learned)
    both.protected = protected
    return both


def save(both: Vocabulary | SeparateVocabularies, folder: str | os.PathLike) -> None:
    """Write the vocabulary's files into a folder, and remove those of another kind."""
    folder = pathlib.Path(folder)
    for name in set(itertools.chain(*FILES.values())) - set(FILES[both.kind]):
        (folder / name).unlink(missing_ok=True)
    sides = zip(FILES[both.kind], (both.source, both.target), strict=True)
    for name, side in dict(sides).items():
        side.save(folder / name)
    (folder / FILE).unlink(missing_ok=True)
    if both.protected:
        both.protected.save(folder)


def exist(folder: str | os.PathLike) -> bool:
    """Whether a folder has all files of a vocabulary."""
    folder = pathlib.Path(folder)
    return any(all((folder / name).exists() for name in names) for names in FILES.values())


def load(folder: str | os.PathLike) -> Vocabulary | SeparateVocabularies:
    """Load what `save` wrote."""
    folder = pathlib.Path(folder)
    kinds = (
        kind for kind, names in FILES.items() if any((folder / name).exists() for name in names)
    )
    both = of_files(paths(next(kinds, "joint"), folder))
    both.protected = ProtectedSpans.load(folder)
    return both


def of_files(files: Sequence[str | os.PathLike]) -> Vocabulary | SeparateVocabularies:
    """Load one file that both languages share, or the source's file and the target's."""
    if len(files) not in (1, 2):
        raise ValueError(
            "a vocabulary is one file for both languages, or one for the source and one for the "
            f"target. Received: {', '.join(map(str, files))}. Name one file, or two."
        )
    loaded = [READERS.get(pathlib.Path(file).suffix, Vocabulary.load)(file) for file in files]
    return loaded[0] if len(loaded) == 1 else SeparateVocabularies(*loaded)


def pieces_by_side(both: Vocabulary | SeparateVocabularies) -> dict[str, list[str]]:
    """Return the pieces of "source" and of "target", by id."""
    return {"source": both.source.pieces, "target": both.target.pieces}


def parts_by_side(
    both: Vocabulary | SeparateVocabularies | WordPieces,
) -> dict[str, Callable[[str], list[int]]]:
    """Return `parts_of` each side, by "source" and "target"; word pieces have none."""
    sides = {"source": both.source, "target": both.target}
    return {name: parts_of(side) for name, side in sides.items() if isinstance(side, Vocabulary)}


def parts_of(learned: Vocabulary) -> Callable[[str], list[int]]:
    """Return a function that cuts a piece of another vocabulary into pieces of the learned one, and
    returns their ids: none for a byte, and none for characters that are unknown here.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=learned.model)
    id_of = {piece: number for number, piece in enumerate(learned.pieces)}

    def cut(piece):
        if piece in RESERVED:
            return []
        ids = processor.encode(piece.replace(SPACE, " "))
        if ids and not piece.startswith(SPACE):
            # SentencePiece puts a space before a text; this piece has none.
            inner = learned.pieces[ids[0]].removeprefix(SPACE)
            ids = [id_of.get(inner, ids[0]), *ids[1:]] if inner else ids[1:]
        return [number for number in ids if number != UNK]

    return cut


def paths(kind: str, folder: str | os.PathLike) -> list[pathlib.Path]:
    """Return the paths of the files of a kind of vocabulary in a folder."""
    return [pathlib.Path(folder) / name for name in dict.fromkeys(FILES[kind])]
