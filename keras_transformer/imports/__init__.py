"""Models that others trained, in Hugging Face's layout (config.json and safetensors), as ours: one
family a file.

Each family's module says what `hugging_face` asks of it:

    MODEL_TYPE                          what config.json calls it
    SIZES                               what config.json must name
    model(config) -> keras.Model        a new model of the sizes of config.json
    weights(config, tensors) -> arrays  by the paths of that model's variables
"""
