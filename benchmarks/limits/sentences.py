"""The served model that is measured, and the sentences it translates.

Without a file of sentences, the corpus that the model was trained on is loaded; nothing else of
this project is imported.
"""

import json
import pathlib

from absl import flags

from keras_transformer.saved_models import versions

MODEL = flags.DEFINE_string(
    "model_base_path", "saved_models/home_assistant_en_de", "Folder of a SavedModel's versions."
)
LINES = flags.DEFINE_string("lines", None, "File of sentences. Default: the model's test split.")


def is_portable():
    """Whether the model is graphs of ONNX or LiteRT."""
    return versions.newest_version(MODEL.value) is None


def newest_version():
    """Find the folder of the model's newest version."""
    portable = versions.newest_version(MODEL.value, versions.DECODERS.values())
    return versions.newest_version(MODEL.value) or portable


def sentences(most):
    """Read the first `most` lines of the file, or the first sources of the model's test split."""
    if LINES.value:
        return pathlib.Path(LINES.value).read_text(encoding="utf-8").splitlines()[:most]
    from pipelines import corpora

    return list(
        corpora.load(
            **json.loads((newest_version() / "model.json").read_text(encoding="utf-8"))["corpus"]
        ).test.sources
    )[:most]
