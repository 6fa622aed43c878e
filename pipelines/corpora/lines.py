"""The user's own text in one language, `<data_dir>/<prefix>.<language>[.gz]`, a text a line.

A language model learns it. As a corpus of pairs, each line stands for itself.
"""

import collections
import os
from collections.abc import Sequence

from pipelines.corpora.line_files import existing_folder, locate, read_lines
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection


def load(
    language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefixes: Sequence[str] = ("train", "valid", "test"),
) -> Corpus:
    """Load three text files. All are looked for before the first is read.

    An empty line, or one over 100,000 characters, is dropped and counted.

    Args:
        language: ending of the files, such as "en".
        data_dir: their folder.
        prefixes: names of the training, validation and test split.

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
    paths = [locate(folder, f"{prefix}.{language}") for prefix in prefixes]
    dropped: collections.Counter[str] = collections.Counter()
    splits = [_kept(path, dropped) for path in paths]
    texts = [ParallelText(lines, lines) for lines in splits]
    return Corpus("lines", language, language, *texts, dropped=dict(dropped))


def _kept(path, dropped):
    kept = []
    for line in read_lines(path):
        if reason := objection(line, line):
            dropped[reason] += 1
        else:
            kept.append(line)
    if not kept:
        raise ValueError(f"{path} holds no text. Fill it, or name another prefix.")
    return kept
