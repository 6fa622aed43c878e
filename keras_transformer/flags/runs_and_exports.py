"""Flags of a training run: when it ends, what it measures, what it keeps, and where."""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_folder, DEFINE_path

TASK = flags.FlagValues()
flags.DEFINE_enum(
    "task",
    "translation",
    [
        *("translation", "parsing", "language_modelling", "masking", "classification", "tagging"),
        "image_classification",
    ],
    "What is learned: to translate sentences; to parse them, from a treebank; to continue text of "
    "one language; to predict its masked pieces; to classify texts; to tag words; or to classify "
    "images.",
    TASK,
)

TRAINING = flags.FlagValues()
flags.DEFINE_integer(
    "max_steps",
    100000,
    "Stop after this many steps, if no other limit comes first.",
    1,
    flag_values=TRAINING,
)
flags.DEFINE_integer(
    "max_epochs",
    None,
    "Stop after this many epochs, if no other limit comes first.",
    1,
    flag_values=TRAINING,
)
flags.DEFINE_float(
    "max_minutes",
    None,
    "Stop after this many minutes of training, if no other limit comes first.",
    0,
    flag_values=TRAINING,
)
flags.DEFINE_integer(
    "patience",
    None,
    "Stop after this many epochs without improvement of the measure of --keep_best, or of the "
    "cross-entropy without that flag.",
    1,
    flag_values=TRAINING,
)
flags.DEFINE_string(
    "keep_best",
    None,
    "Score and export the best epoch by this measure, instead of an average of checkpoints: "
    "cross_entropy; for translation also bleu, for parsing f1, for other tasks accuracy.",
    TRAINING,
)
flags.DEFINE_float(
    "checkpoint_minutes",
    10.0,
    "Minutes between two checkpoints to resume from. Each epoch's end is saved as well.",
    0,
    flag_values=TRAINING,
)
flags.DEFINE_enum(
    "average_over",
    "minutes",
    ["minutes", "epochs"],
    "Checkpoints to average: those written every --checkpoint_minutes, as in the paper (with "
    "--max_minutes those of --average_share), or those written at the ends of epochs.",
    TRAINING,
)
flags.DEFINE_float(
    "average_share",
    0.2,
    "With --max_minutes and --average_over=minutes: the share of the run's end in which the "
    "checkpoints to average are written, evenly in time, the last weights among them. As many of "
    "them are averaged as have the lowest validation cross-entropy.",
    1e-6,
    1,
    flag_values=TRAINING,
)
flags.DEFINE_integer(
    "keep_checkpoints",
    10,
    "Number of last checkpoints to keep, of those that --average_over names.",
    1,
    flag_values=TRAINING,
)
flags.DEFINE_integer(
    "validation_sentences",
    500,
    "Number of sentences to translate for BLEU, or to parse for F1, after each epoch; 0: none. "
    "This search is greedy.",
    0,
    flag_values=TRAINING,
)
flags.DEFINE_enum(
    "mixed_precision",
    "auto",
    ["auto", "float32", "bfloat16"],
    "Precision to compute in while training. auto: bfloat16 if the processor is fast at it.",
    TRAINING,
)
flags.DEFINE_bool(
    "release",
    True,
    "Score the test split and export the model at the end. With --norelease, `evaluate` and "
    "`export` can do both later.",
    TRAINING,
)
flags.DEFINE_bool(
    "report",
    False,
    "Count the floating-point operations of the training, also estimate them from its time as the "
    "paper does, print both numbers, and write them to the run's cost.json.",
    TRAINING,
)
DEFINE_path(
    "init_from",
    None,
    "Start from the weights of this run's folder, of a checkpoint in it, or of this SavedModel.",
    TRAINING,
)

MODEL_DIR = flags.FlagValues()
DEFINE_folder(
    "model_dir",
    None,
    "Folder of the run. Default for training a translator: runs/<corpus>_<source>_<target>; other "
    "tasks print theirs at the start.",
    MODEL_DIR,
)

EXPORT = flags.FlagValues()
DEFINE_folder(
    "export_dir",
    None,
    "Folder of the exported versions. Default: saved_models/<name of the model_dir>.",
    EXPORT,
)

VERSION = flags.FlagValues()
flags.DEFINE_integer(
    "version",
    None,
    "Number of the exported version. Default: the next free one.",
    1,
    2**63 - 1,
    flag_values=VERSION,
)

FORMAT = flags.FlagValues()
flags.DEFINE_enum(
    "format",
    "saved_model",
    ["saved_model", "ctranslate2"],
    "Format of the export. ctranslate2 is for the engine of that name, which has its own search.",
    FORMAT,
)
