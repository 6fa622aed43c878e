"""How a folder of sentence-transformers makes a vector of a text (Reimers and Gurevych 2019,
"Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks"): ours is the mean of the states,
divided by its length.
"""

from typing import ClassVar

import msgspec

from keras_transformer.imports.settings_files import SettingsFiles
from pipelines.json_files import Schema, read_json, refuse, shown

MODULES = "modules.json"
POOLING = "1_Pooling"
OTHER_VECTORS = "Import another model."
# What settings begin with that say how states become one vector.
MODE = "pooling_mode_"
MEAN = (["mean"], ["mean_tokens"])
KINDS = ("Transformer", "Pooling", "Normalize")


class Module(Schema):
    """One step from a text to its vector."""

    HARMLESS: ClassVar = ("idx", "kwargs", "name")

    type: str
    path: str = ""


class PoolingSettings(Schema):
    """The config.json of a pooling."""

    HARMLESS: ClassVar = ("embedding_dimension", "include_prompt", "word_embedding_dimension")

    pooling_mode: str | None = None
    pooling_mode_cls_token: bool = False
    pooling_mode_mean_tokens: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_sqrt_len_tokens: bool = False
    pooling_mode_weightedmean_tokens: bool = False
    pooling_mode_lasttoken: bool = False


class Sentences(Schema):
    """What sentence_bert_config.json may say."""

    FIXED: ClassVar = {"do_lower_case": (False,)}


def refuse_others(files: SettingsFiles) -> None:
    """Refuse a folder whose vectors are made otherwise than ours.

    Raises:
        ValueError: naming the file, and the module or the pooling.
    """
    path = files.path / MODULES
    _refuse_another_pooling(files, _pooling_of(files, path) if path.exists() else POOLING)
    files.read(Sentences, "sentence_bert_config.json", OTHER_VECTORS)


def _pooling_of(files, path):
    """The folder of the pooling that modules.json names."""
    said = read_json(path, OTHER_VECTORS)
    if not isinstance(said, list) or not all(isinstance(module, dict) for module in said):
        raise ValueError(
            f"{path} is damaged: it must hold a list of objects. Received: {shown(said)}. "
            f"{OTHER_VECTORS}"
        )
    modules = [files.of(Module, module, MODULES, OTHER_VECTORS) for module in said]
    kinds = [module.type.rpartition(".")[2] for module in modules]
    # Ours have the length 1 in any case.
    if (*kinds, KINDS[-1])[:3] != KINDS or len(kinds) > len(KINDS):
        raise ValueError(
            f"{path} must have the modules {', '.join(KINDS)}, as our vectors are made. Received: "
            f"{', '.join(map(shown, kinds)) or 'none'}. {OTHER_VECTORS}"
        )
    if modules[0].path:
        refuse("path", f"the first module of {path}", '""', modules[0].path, OTHER_VECTORS)
    if not (files.path / modules[1].path).resolve().is_relative_to(files.path.resolve()):
        refuse("path", f"the second module of {path}", "in it", modules[1].path, OTHER_VECTORS)
    return modules[1].path


def _refuse_another_pooling(files, pooling):
    name = f"{pooling}/config.json"
    path = files.path / name
    found = files.read(PoolingSettings, name, OTHER_VECTORS)
    # Newer versions write "pooling_mode": "cls", older ones "pooling_mode_cls_token": true.
    fields = msgspec.structs.asdict(found)
    modes = [key.removeprefix(MODE) for key, is_used in fields.items() if is_used is True]
    if found.pooling_mode is not None:
        modes = [found.pooling_mode]
    if modes and modes not in MEAN:
        raise ValueError(
            f"the pooling of {path} must be mean, as that of our vectors. Received: "
            f"{', '.join(map(shown, modes))}. Import another model, or delete {pooling} for "
            "vectors that are the mean all the same."
        )
