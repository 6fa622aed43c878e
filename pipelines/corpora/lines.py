"""The user's own text in one language, `<data_dir>/<prefix>.<language>[.gz]`, a text a line.

A language model learns it. As a corpus of pairs, each line stands for itself.
"""

import os
from collections.abc import Sequence

from pipelines.corpora.line_files import existing_folder, locate, read_lines
from pipelines.corpora.parallel_text import Corpus, Origin, ParallelText, objection
from pipelines.dropped import Dropped


def load(
    language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefixes: Sequence[str] = ("train", "valid", "test"),
    strict: bool = False,
) -> Corpus:
    """Load three text files. All are looked for before the first is read.

    An empty line, or one over 100,000 characters, is dropped and counted.

    Args:
        language: ending of the files, such as "en".
        data_dir: their folder.
        prefixes: names of the training, validation and test split.
        strict: whether a line that would be dropped is refused.

    Returns:
        The `Corpus`; sources and targets are the same lines.

    Raises:
        ValueError: no folder is named; a file that is not UTF-8 or not whole, or without a line.
        OSError: a file or folder that is missing or cannot be read.
    """
    if not data_dir:
        raise ValueError(
            f"Corpus lines needs `data_dir`, the folder with the text files. Received: "
            f"{data_dir!r}. Pass --data_dir=FOLDER."
        )
    folder = existing_folder(data_dir)
    paths = [
        locate(folder, f"{prefix}.{language}", "source_language", "prefixes") for prefix in prefixes
    ]
    dropped = Dropped(strict=strict)
    texts = [_kept(path, dropped) for path in paths]
    return Corpus("lines", language, language, *texts, dropped=dropped)


def _kept(path, dropped):
    lines = read_lines(path)
    keep = []
    for number, line in enumerate(lines, 1):
        reason = objection(line, line)
        keep.append(not reason)
        if reason:
            dropped.leave_out(reason, f"{path}, line {number}")
    if not any(keep):
        raise ValueError(f"{path} holds no text. Fill it, or name another prefix.")
    origin = Origin(str(path), range(1, len(lines) + 1))
    return ParallelText(lines, lines, (origin,)).where(keep)
