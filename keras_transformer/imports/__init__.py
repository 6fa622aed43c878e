"""Models that others trained, in Hugging Face's layout (config.json and safetensors), as ours: one
family a file.

Each family's module says what `hugging_face` asks of it:

    MODEL_TYPE                          what config.json calls it
    Config                              what config.json may say, and `MODEL`, the class of ours
    LAYERS                              what layers' names begin with, and the key of their number
    hyperparameters(config)             of our model
    table(config) -> `family.Weight`s   each weight of ours: its path, their name and shape
    plain_name(name) -> name            theirs, without prefix
"""
