"""What to prepare, and how (Vaswani et al. 2017, section 5.1)."""

import dataclasses
import os
from typing import Any

from pipelines.options import option
from pipelines.vocabularies.options import VocabularyOptions

# Words for the kinds of vocabularies, behind "a vocabulary of N pieces".
EACH = {"joint": "", "separate": " a language"}


class Preparation(VocabularyOptions):
    """Preparation.

    Attributes:
        corpus: arguments of `corpora.load` except `cache_dir` and `strict`, as JSON.
        cache_dir: folder for downloads; None: the user's cache folder.
        strict: whether a pair that the corpus would drop is an error; the filters still drop pairs.
    """

    vocabulary: str | None = option(
        None,
        "Vocabulary to use: a vocabulary.model, or those of source and target, joined by a "
        "comma. Default: the one in --output_dir, else one is learned from the text.",
        path=True,
    )
    vocabulary_sentences: int = option(
        5000000, "Number of sampled sentences that the vocabulary is learned from.", at_least=2
    )
    shards: int = option(
        16,
        "Number of files for the training side. A worker holds one of them in memory.",
        at_least=1,
    )
    shards_at_a_time: int | None = option(
        None,
        "Number of shards made in one pass over the text; fewer need less memory. Default: all.",
        at_least=1,
    )
    parts: int | None = option(
        None,
        "Number of workers that read the text, each all of it. Default: 1; with --beam_options the "
        "processors of this machine.",
        at_least=1,
    )
    deduplicate: bool = option(True, "Keep one of several equal pairs.")
    max_length_ratio: float | None = option(
        None,
        "Drop a pair if one side has more than this many times the characters of the other. "
        "Sides of at most 10 characters are not judged.",
        at_least=1,
    )
    filter_untranslated: bool = option(False, "Drop a pair if both sides are equal.")
    filter_scripts: bool = option(
        False, "Drop a pair if a side is mostly in letters that its language is not written in."
    )
    beam_options: str = option(
        "", "Options of Apache Beam, such as '--runner=FlinkRunner --flink_master=host:8081'."
    )
    corpus: dict[str, Any] = dataclasses.field(kw_only=True)
    cache_dir: str | os.PathLike | None = dataclasses.field(kw_only=True)
    strict: bool = dataclasses.field(kw_only=True)

    @property
    def settings(self) -> dict[str, Any]:
        """Return all arguments of `corpora.load`."""
        return {**self.corpus, "cache_dir": self.cache_dir, "strict": self.strict or None}
