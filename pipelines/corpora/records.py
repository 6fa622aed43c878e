"""A corpus that `prepare` has tokenized: training pairs as ids, the other splits as
text (Vaswani et al. 2017, section 5.1).
"""

import os
from pathlib import Path

from pipelines.corpora.line_files import read_lines
from pipelines.corpora.manifest import AGAIN
from pipelines.corpora.parallel_text import Corpus, ParallelText


def load(data_dir: str | os.PathLike | None) -> Corpus:
    """Open the corpus. `Corpus.train.pairs()` reads its records.

    Args:
        data_dir: the folder that `pipelines.prepare.preparation` filled.

    Returns:
        The `Corpus`, its `train` a `Records`, its languages those that it
        was prepared with.

    Raises:
        ValueError: no `data_dir`; a file that is damaged, or of another version or vocabulary.
        FileNotFoundError: a corpus that is not there or not finished, or a file of it that is
            missing.
    """
    if not data_dir:
        raise ValueError(
            "Corpus records needs `data_dir`, the folder that keras_transformer.prepare filled. "
            f"Received: {data_dir!r}. Pass --data_dir=FOLDER."
        )
    from pipelines.corpora.record_files import (
        Records,  # TensorFlow's: the other corpora do without it.
    )

    records = Records(data_dir)
    manifest = records.manifest
    texts = {
        split: ParallelText(*map(_read, text_paths(data_dir, split))) for split in ("valid", "test")
    }
    return Corpus(
        "records",
        records.source_language,
        records.target_language,
        records,
        **texts,
        dropped=manifest["dropped"],
        tags=tuple(manifest["tags"]),
    )


def text_paths(folder: str | os.PathLike, split: str) -> tuple[Path, Path]:
    """The files with the sources and the targets of a split.

    Args:
        folder: of the corpus.
        split: "valid" or "test".

    Returns:
        Their paths.
    """
    source, target = (
        Path(folder).expanduser() / f"{split}.{side}.gz" for side in ("source", "target")
    )
    return source, target


def _read(path: Path) -> list[str]:
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing. {AGAIN}")
    return read_lines(path)
