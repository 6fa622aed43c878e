"""Flags of the tasks of encoder-only models (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding").
"""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

READING = flags.FlagValues()
DEFINE_path(
    "vocabulary_from",
    None,
    "Run or SavedModel whose vocabulary is used. Default: that of --init_from, else one learned "
    "from the text.",
    READING,
)

MASKING = flags.FlagValues()
flags.DEFINE_float(
    "mask_share",
    0.15,
    "Share of a text's pieces that are predicted. Of these, 80 % are replaced by the mask, 10 % by "
    "a random piece, and 10 % are left unchanged.",
    0.01,
    1,
    flag_values=MASKING,
)

LABELLING = flags.FlagValues()
flags.DEFINE_integer(
    "labelled_examples",
    None,
    "Number of labelled examples to train on, drawn by --seed. Default: all.",
    1,
    flag_values=LABELLING,
)

CLASSIFICATION = flags.FlagValues()
flags.DEFINE_enum(
    "pooling",
    "first",
    ["first", "mean"],
    "What classifies a text: the state of its first token, as in BERT, or the mean of all states.",
    CLASSIFICATION,
)

IMPORT = flags.FlagValues()
DEFINE_path(
    "from",
    None,
    "Folder of the model to import, in Hugging Face's layout: config.json and *.safetensors.",
    IMPORT,
)
