"""Load a folder in Hugging Face's layout as one of our models. config.json names its family and
sizes, `*.safetensors` hold its weights; the two are compared before anything is built.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence

import keras
import msgspec
import numpy as np

from keras_transformer.imports import bert, gpt2, m2m_100, marian_mt, t5, vit
from keras_transformer.imports.family import ANOTHER, OWN_CONFIG, ArraysByPath, require_shape
from keras_transformer.imports.folder_files import INDEX, SettingsFiles, WeightFiles, listed
from pipelines.json_files import Schema, quote, read_object, refuse

FAMILIES = {family.MODEL_TYPE: family for family in (bert, gpt2, m2m_100, marian_mt, t5, vit)}
CONFIG = "config.json"
PICTURES = "preprocessor_config.json"
# Unused names listed per kind.
MOST_LISTED = 8


def load(folder: str | os.PathLike) -> keras.Model:
    """Load the model of a folder with config.json and one or several safetensors files, in float32.
    Refuse a folder that is incomplete or damaged, and a family that `FAMILIES` lacks.
    """
    return PretrainedFolder(folder).model()


class PretrainedFolder:
    """The folder of a pretrained model: its family, its config as the family's schema reads it, and
    its other settings. The constructor checks everything and allocates no weights.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        self.files = SettingsFiles(folder)
        path = self.path / CONFIG
        document = self._document()
        self.family = FAMILIES[document["model_type"]]
        self.config = self.files.parse(self.family.Config, document, CONFIG, OWN_CONFIG)
        try:
            self.family.hyperparameters(self.config)
            self.config.labels()
        except ValueError as error:
            # An error about one of our hyperparameters does not name config.json.
            prefix = "" if CONFIG in str(error) else f"{CONFIG}: "
            raise ValueError(f"{prefix}{error}".replace(CONFIG, str(path), 1)) from error
        self._preprocessing = None
        if self.family is vit:
            self._preprocessing = self.files.read(vit.Pictures, PICTURES, ANOTHER)
            vit.check_pictures(self._preprocessing, self.config, self.path / PICTURES)
        self._tensors = WeightFiles(self.path, self.family.PREFIX, self.family.TIES)
        if self.family is t5:
            self.config = t5.of_weights(self.config, [*self._tensors])
        self._check_shapes(path)

    def _document(self):
        path = self.path / CONFIG
        if not path.exists():
            raise FileNotFoundError(
                f"{self.path} must be a folder with {CONFIG} (Hugging Face's), decoder.yml "
                f"(Marian's) or a checkpoint (OpenNMT-tf's). It has {listed(self.path)}."
            )
        document = read_object(path, OWN_CONFIG)
        name = document.get("model_type")
        if not isinstance(name, str) or name not in FAMILIES:
            refuse("model_type", path, f"one of {', '.join(FAMILIES)}", name, ANOTHER)
        return document

    def _check_shapes(self, path):
        # Do not collect the table: config.json may claim more layers than fit in memory.
        for weight in self.family.table(self.config):
            if weight.theirs:
                self._tensors.check(weight.theirs, weight.shape, path, self.family.MODEL_TYPE)
        for prefix, key in self.family.LAYERS.items():
            count = getattr(self.config, key)
            begin = f"{prefix}.{count}."
            if extra := next((name for name in self._tensors if name.startswith(begin)), None):
                refuse(key, path, f"larger: the weights have {quote(extra)}", count, OWN_CONFIG)

    def model(self, pieces: int | None = None) -> keras.Model:
        """Build the model and load its weights. Keep the table's first `pieces` rows; None: all."""
        config, arrays = self.arrays(pieces)
        model = config.model(self.family.hyperparameters(config))
        assign(model, arrays, self.path)
        return model

    def arrays(self, pieces: int | None = None) -> tuple[Schema, Mapping[str, np.ndarray]]:
        """Return the config of the model that `model` builds, and its weights by path."""
        config = self.config
        if pieces:
            config = msgspec.structs.replace(config, vocab_size=pieces)
        arrays = ArraysByPath(self.family.table(config), self._tensors)
        return config, vit.for_ours(arrays, self._preprocessing) if self._preprocessing else arrays

    def unused_parts(self) -> str:
        """List what the import did not use, in one line; "" if nothing. Call it after `model`."""
        read = {CONFIG, INDEX, *self.files.unused}
        unread = [path.name for path in sorted(self.path.glob("*.json")) if path.name not in read]
        kinds = {
            **self.files.unused,
            "weights": self._tensors.unread(),
            "files": [*unread, *self._tensors.unused],
        }
        return unused_line(self.path, kinds)


def unused_line(folder: pathlib.Path, kinds: Mapping[str, Sequence[str]]) -> str:
    """Return a line that lists the unused names of a folder by kind; "" if there are none."""
    parts = []
    for kind, names in kinds.items():
        more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
        if names:
            parts.append(f"{kind}: {', '.join(map(quote, names[:MOST_LISTED]))}{more}")
    return f"Not used of {folder}: {'; '.join(parts)}." if parts else ""


def assign(model: keras.Model, arrays: Mapping[str, np.ndarray], folder: pathlib.Path) -> None:
    """Set each variable of a model to the array of its path; errors name their `folder`."""
    for variable in model.weights:
        # Free the old table before the new one is read: memory may not hold both.
        _set(variable, np.zeros([0] * len(variable.shape), np.float32))
        array = arrays.get(variable.path)
        shape = "missing" if array is None else np.shape(array)
        weight = f"{folder}: the weight of {variable.path}"
        require_shape(shape, tuple(variable.shape), weight, "its settings and weights fit together")
        _set(variable, array)
        del array


def _set(variable, array):
    """Set a variable. In TensorFlow any shape is accepted, and the array is copied only once."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        value = np.asarray(array, tf.as_dtype(variable.dtype).as_numpy_dtype)
        tf.raw_ops.AssignVariableOp(resource=variable.value.handle, value=value)
    elif array.shape == tuple(variable.shape):
        variable.assign(array)
