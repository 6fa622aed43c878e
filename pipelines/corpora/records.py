"""A corpus that `prepare` has tokenized: training pairs as ids, the other splits as text (Vaswani
et al. 2017, section 5.1). Its `manifest.json` is written last, when everything else is complete.
"""

import itertools
import os
from pathlib import Path

from pipelines.corpora.options import CorpusOptions, Folder, Target
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.line_files import read_aligned
from pipelines.options import FREE, again, option


class PreparedRecords(Folder, name="records"):
    """Prepared records. `Corpus.train` is a `Records`, whose `pairs()` reads the ids."""

    has_own_languages = True

    map_dir: str | None = option(
        None,
        "Folder for the ids. They are written there once, uncompressed, and mapped from there: "
        "memory need not hold them, and a later start does not unpack the records. Default: each "
        "start unpacks them into memory.",
        path=True,
        resumed=FREE,
    )
    source_language: str | None = again(CorpusOptions, "source_language", None)
    target_language: str | None = again(Target, "target_language", None)

    def load(self):
        folder = self.require("data_dir", "the folder that keras_transformer.prepare filled")
        # Imported here because it needs TensorFlow, unlike other corpora.
        from pipelines.corpora.record_files import AGAIN, Records

        records = Records(folder, self.map_dir)
        paths = {split: text_paths(records.folder, split) for split in ("valid", "test")}
        for path in itertools.chain(*paths.values()):
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing. {AGAIN}")
        texts = {split: ParallelText(*read_aligned(*sides)) for split, sides in paths.items()}
        return Corpus(
            "records",
            records.manifest["source_language"],
            records.manifest["target_language"],
            records,
            **texts,
            dropped=records.manifest["dropped"],
            tags=tuple(records.manifest["tags"]),
        )

    def stream(self, part=0, parts=1, dropped=None):
        raise ValueError(
            "Corpus records holds token ids, no text. Name the corpus that they were made of."
        )


def text_paths(folder: str | os.PathLike, split: str) -> list[Path]:
    """Return the files with the sources and the targets of a split, "valid" or "test"."""
    return [Path(folder) / f"{split}.{side}.gz" for side in ("source", "target")]
