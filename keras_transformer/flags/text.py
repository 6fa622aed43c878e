"""Flags of the text to learn from, and of the vocabulary (Vaswani et al. 2017, section 5.1)."""

import dataclasses

from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class CorpusOptions(Options):
    """Text."""

    corpus: str = option(
        "home_assistant",
        "Corpus to learn from: home_assistant, text_files, lines, spans, intents, treebank, "
        "tfds, records, mixture or reverse.",
    )
    data_dir: str | None = option(
        None,
        "Folder of the corpus. text_files: train.en[.gz], train.de[.gz], valid.*, test.*. lines "
        "and spans: train.en[.gz], valid.*, test.*. treebank: train.trees[.gz], valid.*, "
        "test.*. records: what prepare wrote. tfds: its data folder.",
        path=True,
    )
    dataset: str | None = option(
        None,
        "Name of a TensorFlow Datasets data set, such as wmt14_translate/de-en, for --corpus=tfds.",
    )
    splits: tuple[str, ...] = option(
        ("train", "validation", "test"),
        "Splits of the data set to train, validate and test on, for --corpus=tfds.",
    )
    mixture: str | None = option(
        None,
        "JSON file that lists corpora with weights and tags, for --corpus=mixture. See "
        "docs/big_corpora.md.",
        path=True,
    )
    train_prefix: str = option("train", "Name of the training files without the language.")
    valid_prefix: str = option("valid", "Name of the validation files without the language.")
    test_prefix: str = option("test", "Name of the test files without the language.")
    tree_leaves: str | None = option(
        None,
        "What a parser writes for each word of the sentence: XX, its part of speech, or the "
        "word itself. Default: xx.",
        choices=("xx", "parts_of_speech", "words"),
    )
    source_language: str | None = option(
        None,
        "Language of the source: a code such as en, or another ending of text_files. Default: "
        "en; of records and mixtures, their own.",
    )
    target_language: str | None = option(
        None,
        "Language to translate into: a code such as de, or another ending of text_files. For "
        "labels and tags: intent or slots for --corpus=intents, topic for train.topic. Default: "
        "de; of records and mixtures, their own.",
    )
    cache_dir: str | None = option(
        None,
        "Folder for downloads. Default: the user's cache folder, which the variable "
        "XDG_CACHE_HOME moves. evaluate has no such flag: it looks in the user's cache folder.",
        path="folder",
    )


@dataclasses.dataclass(frozen=True)
class Strictness(Options):
    """Damaged examples."""

    strict: bool = option(
        False,
        "Refuse text, trees, tagged words and pictures that are damaged or empty. Default: they "
        "are left out, and counted with the place of the first.",
    )


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
    )
    vocabulary_model: str = option(
        "bpe",
        "How the pieces are learned: by byte-pair encoding, or by a unigram language model.",
        choices=("bpe", "unigram"),
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
