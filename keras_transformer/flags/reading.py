"""Flags of the tasks of encoder-only models (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding").
"""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

READING = flags.FlagValues()
DEFINE_path(
    "vocabulary_from",
    None,
    "Use the vocabulary of this run or SavedModel. Default: that of --init_from, else one learned "
    "from the text.",
    READING,
)

MASKING = flags.FlagValues()
flags.DEFINE_float(
    "mask_share",
    0.15,
    "Share of the pieces of a text that are guessed. Of these 80 % are hidden, 10 % replaced.",
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
    "What a text is labelled by: the state of its first token, as in BERT, or the mean of all.",
    CLASSIFICATION,
)

IMPORT = flags.FlagValues()
DEFINE_path(
    "from",
    None,
    "Folder of the model to import, in Hugging Face's layout: config.json and *.safetensors.",
    IMPORT,
)
