"""Flags of the text to learn from, and of the vocabulary (Vaswani et al. 2017, section 5.1)."""

import dataclasses

from pipelines.corpora import CORPORA
from pipelines.options import Options, joined, option, without


@dataclasses.dataclass(frozen=True)
class CorpusChoice(Options):
    """Text."""

    corpus: str = option(
        "home_assistant",
        "Corpus to learn from: home_assistant, text_files, lines, spans, intents, treebank, "
        "tfds, records, mixture or reverse.",
    )


# The options of all corpora, but for those that tasks without a corpus have too.
CorpusOptions = without(joined(CorpusChoice, *CORPORA.values()), "strict", "seed")


@dataclasses.dataclass(frozen=True)
class VocabularyOptions(Options):
    """Vocabulary."""

    vocabulary_size: int = option(
        37000,
        "Most pieces in the vocabulary; with --vocabularies=separate, in each of the two. A "
        "text that holds fewer gives all that it holds; of more characters than fit, the rarest "
        "are spelled in bytes.",
        at_least=1,
    )
    vocabularies: str = option(
        "joint",
        "Whether both languages share one vocabulary (joint), or each has its own (separate). "
        "The latter needs --tie_embeddings=decoder or none.",
        choices=("joint", "separate"),
        resumed="fixed",
    )
    vocabulary_model: str = option(
        "bpe",
        "How the pieces are learned: by byte-pair encoding, or by a unigram language model.",
        choices=("bpe", "unigram"),
        resumed="fixed",
    )


@dataclasses.dataclass(frozen=True)
class PreparationOptions(Options):
    """Preparation."""

    output_dir: str | None = option(
        None,
        "Folder of the prepared corpus. The same command again makes only what is missing.",
        path="folder",
    )
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
        "Number of workers that read the text at once. Default: the processors of this machine.",
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
