"""Flags of the text to learn from, and of the vocabulary (Vaswani et al. 2017, section 5.1)."""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_folder, DEFINE_path

CORPUS = flags.FlagValues()
flags.DEFINE_string(
    "corpus",
    "home_assistant",
    "Corpus to learn from: home_assistant, text_files, lines, spans, intents, treebank, tfds, "
    "records, mixture or reverse.",
    CORPUS,
)
DEFINE_path(
    "data_dir",
    None,
    "Folder of the corpus. text_files: train.en[.gz], train.de[.gz], valid.*, test.*. lines and "
    "spans: train.en[.gz], valid.*, test.*. treebank: train.trees[.gz], valid.*, test.*. records: "
    "what prepare wrote. tfds: its data folder.",
    CORPUS,
)
flags.DEFINE_string(
    "dataset",
    None,
    "Name of a TensorFlow Datasets data set, such as wmt14_translate/de-en, for --corpus=tfds.",
    CORPUS,
)
flags.DEFINE_list(
    "splits",
    ["train", "validation", "test"],
    "Splits of the data set to train, validate and test on, for --corpus=tfds.",
    CORPUS,
)
DEFINE_path(
    "mixture",
    None,
    "JSON file that lists corpora with weights and tags, for --corpus=mixture. See "
    "docs/big_corpora.md.",
    CORPUS,
)
flags.DEFINE_string(
    "train_prefix", "train", "Name of the training files without the language.", CORPUS
)
flags.DEFINE_string(
    "valid_prefix", "valid", "Name of the validation files without the language.", CORPUS
)
flags.DEFINE_string("test_prefix", "test", "Name of the test files without the language.", CORPUS)
flags.DEFINE_enum(
    "tree_leaves",
    None,
    ["xx", "parts_of_speech", "words"],
    "What a parser writes for each word of the sentence: XX, its part of speech, or the word "
    "itself. Default: xx.",
    CORPUS,
)
flags.DEFINE_string(
    "source_language",
    None,
    "Language of the source: a code such as en, or another ending of text_files. Default: en; of "
    "records and mixtures, their own.",
    CORPUS,
)
flags.DEFINE_string(
    "target_language",
    None,
    "Language to translate into: a code such as de, or another ending of text_files. For labels "
    "and tags: intent or slots for --corpus=intents, topic for train.topic. Default: de; of "
    "records and mixtures, their own.",
    CORPUS,
)
DEFINE_folder(
    "cache_dir",
    None,
    "Folder for downloads. Default: the user's cache folder, which the variable XDG_CACHE_HOME "
    "moves. evaluate has no such flag: it looks in the user's cache folder.",
    CORPUS,
)

STRICT = flags.FlagValues()
flags.DEFINE_bool(
    "strict",
    False,
    "Refuse text, trees, tagged words and pictures that are damaged or empty. Default: they are "
    "left out, and counted with the place of the first.",
    STRICT,
)

VOCABULARY = flags.FlagValues()
flags.DEFINE_integer(
    "vocabulary_size",
    37000,
    "Most pieces in the vocabulary; with --vocabularies=separate, in each of the two. A text that "
    "holds fewer gives all that it holds; of more characters than fit, the rarest are spelled in "
    "bytes.",
    1,
    flag_values=VOCABULARY,
)

flags.DEFINE_enum(
    "vocabularies",
    "joint",
    ["joint", "separate"],
    "Whether both languages share one vocabulary (joint), or each has its own (separate). The "
    "latter needs --tie_embeddings=decoder or none.",
    VOCABULARY,
)
flags.DEFINE_enum(
    "vocabulary_model",
    "bpe",
    ["bpe", "unigram"],
    "How the pieces are learned: by byte-pair encoding, or by a unigram language model.",
    VOCABULARY,
)

PREPARE = flags.FlagValues()
DEFINE_folder(
    "output_dir",
    None,
    "Folder of the prepared corpus. The same command again makes only what is missing.",
    PREPARE,
)
DEFINE_path(
    "vocabulary",
    None,
    "Vocabulary to use: a vocabulary.model, or those of source and target, joined by a comma. "
    "Default: the one in --output_dir, else one is learned from the text.",
    PREPARE,
)
flags.DEFINE_integer(
    "vocabulary_sentences",
    5000000,
    "Number of sampled sentences that the vocabulary is learned from.",
    2,
    flag_values=PREPARE,
)
flags.DEFINE_integer(
    "shards",
    16,
    "Number of files for the training side. A worker holds one of them in memory.",
    1,
    flag_values=PREPARE,
)
flags.DEFINE_integer(
    "shards_at_a_time",
    None,
    "Number of shards made in one pass over the text; fewer need less memory. Default: all.",
    1,
    flag_values=PREPARE,
)
flags.DEFINE_integer(
    "parts",
    None,
    "Number of workers that read the text at once. Default: the processors of this machine.",
    1,
    flag_values=PREPARE,
)
flags.DEFINE_bool("deduplicate", True, "Keep one of several equal pairs.", PREPARE)
flags.DEFINE_float(
    "max_length_ratio",
    None,
    "Drop a pair if one side has more than this many times the characters of the other. Sides of "
    "at most 10 characters are not judged.",
    1,
    flag_values=PREPARE,
)
flags.DEFINE_bool("filter_untranslated", False, "Drop a pair if both sides are equal.", PREPARE)
flags.DEFINE_bool(
    "filter_scripts",
    False,
    "Drop a pair if a side is mostly in letters that its language is not written in.",
    PREPARE,
)
flags.DEFINE_string(
    "beam_options",
    "",
    "Options of Apache Beam, such as '--runner=FlinkRunner --flink_master=host:8081'.",
    PREPARE,
)
