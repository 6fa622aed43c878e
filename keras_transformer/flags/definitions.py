"""The definition of every flag, in groups that commands declare; nowhere else is one defined.

The defaults are the paper's base model (Vaswani et al. 2017, table 3 and section 5).
"""

from absl import flags as absl_flags


def _define_corpus():
    absl_flags.DEFINE_string(
        "corpus",
        "home_assistant",
        "The text: home_assistant, text_files, tfds, records, mixture or reverse.",
    )
    absl_flags.DEFINE_string(
        "data_dir",
        None,
        "Folder of text_files (train.en[.gz], train.de[.gz], valid.*, test.*), records, or tfds.",
    )
    absl_flags.DEFINE_string(
        "dataset",
        None,
        "With --corpus=tfds: a TensorFlow Datasets name, such as wmt14_translate/de-en.",
    )
    absl_flags.DEFINE_list(
        "splits",
        ["train", "validation", "test"],
        "With --corpus=tfds: its splits to train, validate and test on.",
    )
    absl_flags.DEFINE_string(
        "mixture",
        None,
        "With --corpus=mixture: a JSON file of corpora, weights and tags; see README.md.",
    )
    absl_flags.DEFINE_string(
        "train_prefix", "train", "Name of the training files before the language."
    )
    absl_flags.DEFINE_string(
        "valid_prefix", "valid", "Name of the validation files before the language."
    )
    absl_flags.DEFINE_string("test_prefix", "test", "Name of the test files before the language.")
    absl_flags.DEFINE_string("source_language", "en", "Code of the language to translate from.")
    absl_flags.DEFINE_string("target_language", "de", "Code of the language to translate into.")
    absl_flags.DEFINE_string(
        "cache_dir", None, "Folder for downloads. Default: the user's cache folder."
    )


def _define_seed():
    absl_flags.DEFINE_integer(
        "seed",
        1,
        "Of generated text, the weights, the dropout, the order of the batches, the samples.",
        lower_bound=0,
    )


def _define_vocabulary():
    absl_flags.DEFINE_integer(
        "vocabulary_size", 37000, "V: pieces shared by both languages.", lower_bound=1
    )


def _define_model():
    absl_flags.DEFINE_integer(
        "num_layers", 6, "N: layers of the encoder and of the decoder.", lower_bound=1
    )
    absl_flags.DEFINE_integer("d_model", 512, "Width of the residual stream.", lower_bound=2)
    absl_flags.DEFINE_integer(
        "d_ff", 2048, "Inner width of the feed-forward networks.", lower_bound=1
    )
    absl_flags.DEFINE_integer("num_heads", 8, "h: attention heads.", lower_bound=1)
    absl_flags.DEFINE_integer(
        "d_k",
        None,
        "Width of a head's queries and keys. Default: d_model / num_heads.",
        lower_bound=1,
    )
    absl_flags.DEFINE_integer("d_v", None, "Width of a head's values. Default: d_k.", lower_bound=1)
    absl_flags.DEFINE_enum(
        "norm", "post", ["post", "pre"], "Where layer norms stand; post: the paper's."
    )
    absl_flags.DEFINE_enum(
        "activation",
        "relu",
        ["relu", "gelu", "swish"],
        "Activation of the feed-forward networks; relu: the paper's.",
    )
    absl_flags.DEFINE_float(
        "dropout", 0.1, "P_drop, a probability below 1.", lower_bound=0, upper_bound=0.99
    )
    absl_flags.DEFINE_float(
        "label_smoothing",
        0.1,
        "epsilon_ls, a probability below 1.",
        lower_bound=0,
        upper_bound=0.99,
    )


def _define_batch_tokens():
    absl_flags.DEFINE_integer(
        "batch_tokens",
        None,
        "Tokens of a batch with padding. Default: 25,000 to train, source and target each, of a "
        "replica; 2,048 of the source to translate, "
        "for which flag files do not count.",
        lower_bound=1,
    )


def _define_batches():
    absl_flags.DEFINE_integer(
        "max_train_length",
        256,
        "Longest sentence to train on, in pieces; longer pairs are dropped.",
        lower_bound=2,
    )
    absl_flags.DEFINE_integer(
        "accumulate", 1, "Batches that each replica adds up before an update.", lower_bound=1
    )
    absl_flags.DEFINE_bool(
        "static_shapes",
        False,
        "Compile a graph a shape, as TPUs and XLA want it: fewer shapes, one a step.",
    )
    absl_flags.DEFINE_bool(
        "jit_compile", False, "Compile forward and backward pass by XLA; slower on a CPU."
    )
    absl_flags.DEFINE_enum(
        "distribution",
        "one",
        ["one", "mirrored", "multi_worker", "tpu"],
        "Replicas: see README.md, Many replicas.",
    )
    absl_flags.DEFINE_string("tpu", "", "With --distribution=tpu: name or address of the TPU.")


def _define_optimizer():
    absl_flags.DEFINE_enum(
        "schedule",
        "transformer",
        ["transformer", "cosine", "constant"],
        "transformer: the paper's section 5.3.",
    )
    absl_flags.DEFINE_integer(
        "warmup_steps", 4000, "Steps until the learning rate peaks.", lower_bound=1
    )
    absl_flags.DEFINE_float(
        "learning_rate_scale", 1.0, "Factor on the paper's learning rate.", lower_bound=1e-9
    )
    absl_flags.DEFINE_float(
        "learning_rate",
        None,
        "Peak of --schedule=cosine or constant. Default: the paper's.",
        lower_bound=1e-9,
    )
    absl_flags.DEFINE_enum(
        "optimizer", "adam", ["adam", "adamw"], "adamw: with decoupled weight decay."
    )
    absl_flags.DEFINE_float(
        "weight_decay", 0.0, "Of --optimizer=adamw, on matrices.", lower_bound=0
    )
    absl_flags.DEFINE_float(
        "clip_norm",
        None,
        "Largest global norm of the gradients. Default: not clipped.",
        lower_bound=1e-9,
    )
    absl_flags.DEFINE_float(
        "ema",
        None,
        "Momentum of a moving average of the weights, which is then what is scored and exported.",
    )


def _define_training():
    absl_flags.DEFINE_integer(
        "max_steps", 100000, "Training ends after so many steps,", lower_bound=1
    )
    absl_flags.DEFINE_integer("max_epochs", None, "or so many passes over the text,", lower_bound=1)
    absl_flags.DEFINE_float("max_minutes", None, "or so many minutes,", lower_bound=0)
    absl_flags.DEFINE_integer(
        "patience",
        None,
        "or so many epochs without a better --keep_best: whichever comes first.",
        lower_bound=1,
    )
    absl_flags.DEFINE_string(
        "keep_best",
        None,
        "Score and export the best epoch instead of an average: by bleu or cross_entropy.",
    )
    absl_flags.DEFINE_float(
        "checkpoint_minutes", 10.0, "Minutes between checkpoints inside an epoch.", lower_bound=0
    )
    absl_flags.DEFINE_integer(
        "keep_checkpoints", 10, "How many of the last checkpoints stay.", lower_bound=1
    )
    absl_flags.DEFINE_integer(
        "validation_sentences",
        500,
        "Sentences translated for BLEU after each epoch; 0: none.",
        lower_bound=0,
    )
    absl_flags.DEFINE_enum(
        "mixed_precision",
        "auto",
        ["auto", "float32", "bfloat16"],
        "auto: bfloat16 where the processor is fast at it.",
    )
    absl_flags.DEFINE_bool(
        "release",
        True,
        "Score the test set and export at the end; without, `evaluate` and `export` still can.",
    )
    absl_flags.DEFINE_string(
        "init_from",
        None,
        "Start from the weights of a run's folder, a checkpoint in one, or a SavedModel.",
    )


def _define_averaging():
    absl_flags.DEFINE_integer(
        "average_checkpoints", 5, "How many of the last checkpoints are averaged.", lower_bound=1
    )


def _define_model_dir():
    absl_flags.DEFINE_string(
        "model_dir", None, "Folder of the run. Default: runs/<corpus>_<source>_<target>."
    )


def _define_search():
    absl_flags.DEFINE_integer(
        "beam_size", None, "K: hypotheses kept; 1 is greedy search. Default: 4.", lower_bound=1
    )
    absl_flags.DEFINE_float(
        "length_penalty",
        None,
        "alpha of ((5 + length) / 6)^alpha; 0: none. Default: 0.6.",
        lower_bound=0,
    )


def _define_decoding():
    absl_flags.DEFINE_float(
        "coverage_penalty",
        0.0,
        "beta of Wu et al. 2016, eq. 14: source words must be attended to.",
        lower_bound=0,
    )
    absl_flags.DEFINE_integer(
        "num_hypotheses",
        1,
        "Translations of a line, best first; more than one with --json.",
        lower_bound=1,
    )
    absl_flags.DEFINE_string(
        "max_length",
        "+50",
        'Longest translation in pieces: 80, "+50" or "1.5x" the source\'s, or "2x+10".',
    )
    absl_flags.DEFINE_string("min_length", "2", "Shortest translation, likewise, its end counted.")
    absl_flags.DEFINE_integer(
        "no_repeat_ngram_size",
        0,
        "So many pieces in a row come once in a translation; 0: any may.",
        lower_bound=0,
    )
    absl_flags.DEFINE_float(
        "repetition_penalty",
        1.0,
        "Above 1: what has come before comes less likely again.",
        lower_bound=1e-9,
    )
    absl_flags.DEFINE_integer(
        "samples",
        0,
        "Draw so many translations instead of a search, and give the likeliest.",
        lower_bound=0,
    )
    absl_flags.DEFINE_float(
        "temperature",
        None,
        "Of samples: below 1 draws the likely more often. Default: 1.",
        lower_bound=1e-9,
    )
    absl_flags.DEFINE_integer(
        "top_k",
        None,
        "Of samples: draw from so many likeliest pieces. Default: all.",
        lower_bound=0,
    )
    absl_flags.DEFINE_float(
        "top_p",
        None,
        "Of samples: draw from this share of the probability. Default: 1.",
        lower_bound=1e-9,
        upper_bound=1,
    )


def _define_precision():
    absl_flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "bfloat16"],
        "Of the weights to translate with. bfloat16: half the bytes, and faster where the "
        "processor multiplies it.",
    )


def _define_export():
    absl_flags.DEFINE_string(
        "export_dir", None, "Folder of the versions. Default: saved_models/<name of the model_dir>."
    )


def _define_version():
    absl_flags.DEFINE_integer(
        "version", None, "Number of the version. Default: the next free one.", lower_bound=1
    )


def _define_format():
    absl_flags.DEFINE_enum(
        "format",
        "saved_model",
        ["saved_model", "ctranslate2"],
        "ctranslate2: for that engine and its own search.",
    )


def _define_model_path():
    absl_flags.DEFINE_string(
        "model",
        None,
        "What translates: a run's folder, a checkpoint in it, or saved_models/<name>[/<version>].",
    )


def _define_translate():
    absl_flags.DEFINE_string("input", "-", "File of lines to translate, UTF-8; -: standard input.")
    absl_flags.DEFINE_string(
        "prefix_file",
        None,
        "File of as many lines: what each translation shall begin with; empty: anything.",
    )
    absl_flags.DEFINE_bool(
        "split_sentences",
        False,
        "Split each line into sentences, and join their translations to one line again.",
    )
    absl_flags.DEFINE_bool("stream", False, "Answer each line of standard input when it comes.")
    absl_flags.DEFINE_bool(
        "json",
        False,
        "Write a JSON object a line: all hypotheses, their scores, and log P of each piece.",
    )


def _define_output():
    absl_flags.DEFINE_string(
        "output", "-", "File for what comes out, a line for each line; -: standard output."
    )


def _define_evaluate():
    absl_flags.DEFINE_enum(
        "split",
        "test",
        ["train", "valid", "test"],
        "Split of the corpus that the model was trained on.",
    )


def _define_files():
    absl_flags.DEFINE_string("source_file", None, "A file of source lines,")
    absl_flags.DEFINE_string("reference_file", None, "and a file of their translations.")


def _define_prepare():
    absl_flags.DEFINE_string(
        "output_dir",
        None,
        "Folder of the prepared corpus. The same command again makes only what is missing.",
    )
    absl_flags.DEFINE_string(
        "vocabulary",
        None,
        "A vocabulary.model to take. Default: that of --output_dir, or learned from the text.",
    )
    absl_flags.DEFINE_integer(
        "vocabulary_sentences",
        5000000,
        "Sentences, sampled, that it is learned from.",
        lower_bound=2,
    )
    absl_flags.DEFINE_integer(
        "shards",
        16,
        "Files to cut the training side into; a worker holds one in memory.",
        lower_bound=1,
    )
    absl_flags.DEFINE_integer(
        "shards_at_a_time",
        None,
        "Made in one reading of the text. Default: all. Fewer: less memory.",
        lower_bound=1,
    )
    absl_flags.DEFINE_integer(
        "parts",
        None,
        "Workers that read the text at a time. Default: the processors here.",
        lower_bound=1,
    )
    absl_flags.DEFINE_bool("deduplicate", True, "Of equal pairs keep one.")
    absl_flags.DEFINE_float(
        "max_length_ratio",
        None,
        "Drop pairs with a side so many times longer, in characters.",
        lower_bound=1,
    )
    absl_flags.DEFINE_bool("filter_untranslated", False, "Drop pairs with equal sides.")
    absl_flags.DEFINE_bool(
        "filter_scripts",
        False,
        "Drop pairs with a side mostly in letters that its language is not written in.",
    )
    absl_flags.DEFINE_string(
        "beam_options",
        "",
        "Apache Beam's, such as '--runner=FlinkRunner --flink_master=host:8081'.",
    )


def _define_serve():
    absl_flags.DEFINE_string(
        "model_base_path", None, "Folder of a SavedModel's versions: saved_models/<name>."
    )
    absl_flags.DEFINE_string(
        "model_name", None, "Name of the model in the URLs. Default: the folder's."
    )
    absl_flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen at; 0.0.0.0: every one of this machine."
    )
    absl_flags.DEFINE_integer(
        "rest_api_port",
        8501,
        "Port to listen at; 0: any that is free.",
        lower_bound=0,
        upper_bound=65535,
    )
    absl_flags.DEFINE_float(
        "file_system_poll_wait_seconds",
        1.0,
        "Seconds between looks for a new version.",
        lower_bound=0.01,
    )
    absl_flags.DEFINE_integer(
        "max_batch_size",
        64,
        "Most texts of a request, and of requests answered by one call.",
        lower_bound=1,
    )
    absl_flags.DEFINE_integer(
        "batch_timeout_micros",
        5000,
        "How long a request waits for others to join it.",
        lower_bound=0,
    )
    absl_flags.DEFINE_integer(
        "max_enqueued_batches",
        100,
        "Batches that may wait; what comes then is answered with 503.",
        lower_bound=1,
    )
    absl_flags.DEFINE_integer(
        "num_batch_threads",
        None,
        "Batches that are worked on at a time. Default: one a core.",
        lower_bound=1,
    )
    absl_flags.DEFINE_integer("max_request_bytes", 2**20, "Longest request.", lower_bound=1)
    absl_flags.DEFINE_integer("max_text_bytes", 5000, "Longest text, in UTF-8.", lower_bound=1)


GROUPS = {
    name.removeprefix("_define_"): define
    for name, define in [*globals().items()]
    if name.startswith("_define_")
}

# The commands' modules, not this one, own the flags: absl shows in --help those of the command
# alone.
absl_flags.disclaim_key_flags()
