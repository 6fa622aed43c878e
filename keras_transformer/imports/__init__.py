"""Models trained by other programs (Hugging Face, Marian, OpenNMT-tf), loaded into our classes.

`hugging_face` needs these names in the module of each family:

    MODEL_TYPE                          `model_type` in config.json
    Config                              schema of config.json; its `model` builds our model
    LAYERS                              prefix of the layers' weights -> config key of their number
    hyperparameters(config)             hyperparameters of our model
    table(config) -> `family.Weight`s   each of our weights: its path, and their name and shape
    PREFIX                              what may precede their names of weights
    TIES                                name of a table -> another that it may be stored under
"""
