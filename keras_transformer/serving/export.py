"""From a trained model to a SavedModel that TF Serving takes: strings in, strings out."""

import os
import pathlib
import shutil

import tensorflow as tf

from keras_transformer.serving.loading import newest_version
from keras_transformer.serving.model_folder import write_json


def export(module, folder, description):
    """Write the next version of a model, whole or not at all.

    Beside the graph lie `model.json` and `assets.extra/vocabulary.model`: with them another model can be trained from this one.

    Args:
        module: a `TranslationModule`.
        folder: `saved_models/<name>`, where TF Serving looks for numbered versions.
        description: what the model is, the content of `model.json`.

    Returns:
        The path of the new version, `<folder>/<version>`.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    version = newest_version(folder) + 1
    temporary = folder / f".{version}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        tf.saved_model.save(module, str(temporary), signatures={"serving_default": module.translate})
        write_json(temporary / "model.json", description)
        vocabulary = temporary / "assets.extra" / "vocabulary.model"
        vocabulary.parent.mkdir()
        module.vocabulary.save(vocabulary)
        os.rename(temporary, folder / str(version))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder / str(version)
