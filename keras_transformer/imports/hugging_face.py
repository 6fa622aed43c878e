"""A folder in Hugging Face's layout as one of our models: config.json says its family and sizes,
`*.safetensors` hold its weights. What they say is compared before anything is built.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence

import keras
import msgspec
import numpy as np

from keras_transformer.imports import bert, gpt2, m2m_100, marian_mt, t5, vit
from keras_transformer.imports.family import AGAIN, ANOTHER, ArraysByPath
from keras_transformer.imports.folder_files import INDEX, SettingsFiles, WeightFiles, listed
from pipelines.json_files import Schema, quote, read_object, refuse

FAMILIES = {family.MODEL_TYPE: family for family in (bert, gpt2, m2m_100, marian_mt, t5, vit)}
CONFIG = "config.json"
PICTURES = "preprocessor_config.json"
# Of the names that are not used, as many are told of each file.
MOST_TOLD = 8


def load(folder: str | os.PathLike) -> keras.Model:
    """Make the model of a folder that has a config.json and one or several files of safetensors, in
    float32: one of its family in `FAMILIES`. What is missing, damaged or of another family is
    refused.
    """
    return PretrainedFolder(folder).model()


class PretrainedFolder:
    """The folder of a model that others trained, with its family, the config that the family's
    schema reads, and its settings. It is checked when this is made; nothing of its size is
    allocated.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        self.files = SettingsFiles(folder)
        path = self.path / CONFIG
        document = self._document()
        self.family = FAMILIES[document["model_type"]]
        self.config = self.files.of(self.family.Config, document, CONFIG, AGAIN)
        try:
            self.family.hyperparameters(self.config)
            self.config.labels()
        except ValueError as error:
            # Of a size of ours, where it names none of theirs.
            where = "" if CONFIG in str(error) else f"{CONFIG}: "
            raise ValueError(f"{where}{error}".replace(CONFIG, str(path), 1)) from error
        self._pictures = self._read_pictures()
        self._tensors = WeightFiles(self.path, self.family.plain_name)
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
        document = read_object(path, AGAIN)
        name = document.get("model_type")
        if not isinstance(name, str) or name not in FAMILIES:
            refuse("model_type", path, f"one of {', '.join(FAMILIES)}", name, ANOTHER)
        return document

    def _read_pictures(self):
        """What preprocessor_config.json says, for a family that reads it."""
        if self.family is not vit:
            return None
        pictures = self.files.read(vit.Pictures, PICTURES, ANOTHER)
        vit.check_pictures(pictures, self.config, self.path / PICTURES)
        return pictures

    def _check_shapes(self, path):
        # One by one: config.json may say more layers than a table could hold.
        for weight in self.family.table(self.config):
            if weight.theirs:
                self._tensors.check(weight.theirs, weight.shape, path, self.family.MODEL_TYPE)
        for prefix, key in self.family.LAYERS.items():
            count = getattr(self.config, key)
            begin = f"{prefix}.{count}."
            if more := next((name for name in self._tensors if name.startswith(begin)), None):
                refuse(key, path, f"more, for the weights have {quote(more)}", count, AGAIN)

    def model(self, pieces: int | None = None) -> keras.Model:
        """Make the model, with its weights, of so many pieces, by default as many as the table has
        rows. Rows behind them are left out.
        """
        config, arrays = self.arrays(pieces)
        model = config.model(self.family.hyperparameters(config))
        assign(model, arrays, self.path)
        return model

    def arrays(self, pieces: int | None = None) -> tuple[Schema, Mapping[str, np.ndarray]]:
        """The config of the model that `model` makes, and its weights by their paths."""
        config = self.config
        if pieces:
            config = msgspec.structs.replace(config, vocab_size=pieces)
        arrays = ArraysByPath(self.family.table(config), self._tensors)
        return config, vit.for_ours(arrays, self._pictures) if self._pictures else arrays

    def unused_parts(self) -> str:
        """What of the folder is not used, in one line; "" if nothing is. Call it after `model`."""
        files = {CONFIG, INDEX, *self.files.unused}
        others = [path.name for path in sorted(self.path.glob("*.json")) if path.name not in files]
        kinds = {
            **self.files.unused,
            "weights": self._tensors.unread(),
            "files": [*others, *self._tensors.unused],
        }
        return not_used(self.path, kinds)


def not_used(folder: pathlib.Path, kinds: Mapping[str, Sequence[str]]) -> str:
    """The line that tells what of a folder is not used, names by their kind; "" without any."""
    parts = []
    for kind, names in kinds.items():
        more = f" and {len(names) - MOST_TOLD:,} more" if len(names) > MOST_TOLD else ""
        if names:
            parts.append(f"{kind}: {', '.join(map(quote, names[:MOST_TOLD]))}{more}")
    return f"Not used of {folder}: {'; '.join(parts)}." if parts else ""


def assign(model: keras.Model, arrays: Mapping[str, np.ndarray], folder: pathlib.Path) -> None:
    """Set each variable of a model to the array of its path. `folder` is where they are from."""
    for variable in model.weights:
        # Beside a large table there is no memory for the one that it replaces.
        _set(variable, np.zeros([0] * len(variable.shape), np.float32))
        array = arrays.get(variable.path)
        shape = "missing" if array is None else np.shape(array)
        if shape != tuple(variable.shape):
            raise ValueError(
                f"{folder}: the weight of {variable.path} is {shape}, expected "
                f"{tuple(variable.shape)}. Check that config.json and the weights belong together."
            )
        _set(variable, array)
        del array


def _set(variable, array):
    """Set a variable; one of TensorFlow to any shape, for a moment, and by one copy, not two."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        value = np.asarray(array, tf.as_dtype(variable.dtype).as_numpy_dtype)
        tf.raw_ops.AssignVariableOp(resource=variable.value.handle, value=value)
    elif array.shape == tuple(variable.shape):
        variable.assign(array)
