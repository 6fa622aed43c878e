"""A folder in Hugging Face's layout as one of our models: config.json says its family and sizes,
`*.safetensors` hold its weights.
"""

import json
import os
import pathlib
from collections.abc import Mapping

import keras
import numpy as np

from keras_transformer.imports import bert, gpt2, t5, vit

FAMILIES = {family.MODEL_TYPE: family for family in (bert, gpt2, t5, vit)}
# What settings of sentence-transformers begin with that say how states become one vector.
MODE = "pooling_mode_"


def load(folder: str | os.PathLike) -> keras.Model:
    """Make the model of a folder, with its weights, in float32.

    Args:
        folder: with config.json and one or several files of safetensors.

    Returns:
        A model of its family: see `FAMILIES`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: for another family, or if a file is damaged or lacks a size or a weight.
        ImportError: if safetensors is not installed.
    """
    folder = pathlib.Path(folder)
    config = read_config(folder)
    family = FAMILIES[config["model_type"]]
    model = family.model(config)
    try:
        arrays = family.weights(config, read_tensors(folder))
    except KeyError as error:
        raise ValueError(
            f"{folder} lacks the weight {error}, which a model of the family "
            f"{family.MODEL_TYPE} has. Check that the folder is whole."
        ) from None
    assign(model, arrays, folder)
    return model


def read_config(folder: pathlib.Path) -> dict:
    """Read config.json, with what preprocessor_config.json says of pictures, if it is there, as its
    "preprocessor".

    Raises:
        FileNotFoundError, ValueError: as `load`.
    """
    path = folder / "config.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} has no config.json: it must be a folder in Hugging Face's layout, with "
            "config.json and model.safetensors."
        )
    config = _json(path)
    if config.get("model_type") not in FAMILIES:
        raise ValueError(
            f"`model_type` of {path} must be one of {', '.join(FAMILIES)}. Received: "
            f"{config.get('model_type')}."
        )
    sizes = FAMILIES[config["model_type"]].SIZES
    missing = [name for name in sizes if name not in config]
    if missing:
        raise ValueError(
            f"{path} lacks {', '.join(missing)}. Take the config.json that was saved with the "
            "weights."
        )
    pictures = folder / "preprocessor_config.json"
    return {**config, "preprocessor": _json(pictures)} if pictures.exists() else config


def refuse_another_pooling(folder: str | os.PathLike) -> None:
    """Refuse a folder of sentence-transformers whose vectors are no mean of the states, as ours
    are.

    Raises:
        ValueError: naming what they are.
    """
    path = pathlib.Path(folder) / "1_Pooling" / "config.json"
    settings = _json(path) if path.exists() else {}
    # Newer versions write "pooling_mode": "cls", older ones "pooling_mode_cls_token": true.
    used = [name for name, is_used in settings.items() if is_used is True]
    modes = [name.removeprefix(MODE) for name in used if name.startswith(MODE)]
    modes = [settings["pooling_mode"]] if "pooling_mode" in settings else modes
    if modes and modes not in (["mean"], ["mean_tokens"]):
        raise ValueError(
            f"the pooling of {path} must be mean, as that of our vectors. Received: "
            f"{', '.join(map(str, modes))}. Import another model, or delete 1_Pooling for vectors "
            "that are the mean all the same."
        )


def _json(path):
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}).") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must have a JSON object. Received: {type(found).__name__}.")
    return found


def read_tensors(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """Read all weights of a folder as float32, by their names.

    Raises:
        FileNotFoundError, ValueError, ImportError: as `load`.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise ImportError(
            "safetensors is missing: pip install 'keras-transformer-nmt[imports]'."
        ) from error
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise FileNotFoundError(
            f"{folder} has no weights: a file that ends in .safetensors. Save the model again with "
            "safe_serialization=True."
        )
    tensors = {}
    for path in paths:
        try:
            tensors |= load_file(path)
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is damaged ({error}).") from error
    return {name: np.asarray(array, np.float32) for name, array in tensors.items()}


def assign(model: keras.Model, arrays: Mapping[str, np.ndarray], folder: pathlib.Path) -> None:
    """Set each variable of a model.

    Args:
        model: the model.
        arrays: by the paths of its variables.
        folder: where they are from, for errors.

    Raises:
        ValueError: if one is missing or has another shape, before any is set.
    """
    for variable in model.weights:
        shape = np.shape(arrays[variable.path]) if variable.path in arrays else "missing"
        if shape != tuple(variable.shape):
            raise ValueError(
                f"{folder}: the weight of {variable.path} is {shape}, expected "
                f"{tuple(variable.shape)}. Check that config.json and the weights belong together."
            )
    for variable in model.weights:
        variable.assign(arrays[variable.path])
