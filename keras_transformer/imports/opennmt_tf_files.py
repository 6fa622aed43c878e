"""The text files of a model of OpenNMT-tf: where they lie, what config.yml says, and its pieces."""

import pathlib
from typing import Any, ClassVar, Literal

import msgspec

from keras_transformer.imports.family import ANOTHER, Factor, Natural, Size
from keras_transformer.imports.folder_files import listed
from keras_transformer.imports.marian_files import WHOLE, read_yaml
from pipelines import json_files
from pipelines.json_files import Schema, quote, read_text, refuse

CONFIG = "config.yml"
DESCRIPTION = "model_description.py"
STATE = "checkpoint"
INDEX = ".index"
BLANK = ["<blank>", "<s>", "</s>"]
SIDES = {"source": "features", "target": "labels"}


class Data(Schema):
    """What `data` of config.yml may say of the text."""

    FIXED: ClassVar = {"target_sequence_controls": (None, {"start": True, "end": True})}

    source_vocabulary: str = ""
    target_vocabulary: str = ""
    source_tokenization: dict[str, Any] | str | None = None
    target_tokenization: dict[str, Any] | str | None = None
    source_sequence_controls: dict[str, bool] | None = None


class Params(Schema):
    """What `params` of config.yml may say of decoding."""

    FIXED: ClassVar = {
        "coverage_penalty": (0, 0.0),
        "decoding_noise": (None, []),
        "replace_unknown_target": (False,),
        "sampling_topk": (1,),
    }

    beam_width: Size = 4
    length_penalty: Factor = 0.0
    maximum_decoding_length: Size = 250
    minimum_decoding_length: Natural = 0


class OpenNMTTokenizer(Schema):
    """The cuts of OpenNMT's Tokenizer that a graph can make."""

    HARMLESS = ("sp_alpha", "sp_nbest_size")

    mode: Literal["none"]
    model: str = msgspec.field(name="sp_model_path")


class SentencePieceTokenizer(Schema):
    """A SentencePiece model."""

    HARMLESS = ("alpha", "nbest_size")

    model: str


TOKENIZERS = {one.__name__: one for one in (OpenNMTTokenizer, SentencePieceTokenizer)}


def is_opennmt_tf(folder: pathlib.Path) -> bool:
    """Whether a folder looks like one of OpenNMT-tf: its model_dir, or that with a config.yml."""
    path = pathlib.Path(folder)
    has_config = (path / CONFIG).exists() or (path / DESCRIPTION).exists()
    return _has_checkpoint(path) or (has_config and any(map(_has_checkpoint, _folders(path))))


def _has_checkpoint(path):
    has_index = path.is_dir() and any(path.glob(f"*{INDEX}"))
    return (path / STATE).exists() or (has_index and not (path / "config.json").exists())


def _folders(path):
    return sorted(one for one in path.iterdir() if one.is_dir()) if path.is_dir() else []


class TextFiles:
    """The text files of a model: in the folder of its checkpoint, or in one of the two above.
    `data` and `params` are what config.yml says, all defaults without one.
    """

    def __init__(self, folder: pathlib.Path):
        inside = [folder] if _has_checkpoint(folder) else _folders(folder)
        inside = [one for one in inside if _has_checkpoint(one)]
        if len(inside) != 1:
            raise ValueError(
                f"{folder} must have one folder with a checkpoint. It has {listed(folder)}. Name "
                "the one that you want."
            )
        [self._folder] = inside
        self._all = [self._folder, *list(self._folder.resolve().parents)[:2]]
        self.prefix = self._newest()
        self._config = read_yaml(path) if (path := self.find(CONFIG)) else {}
        self.data = self._section("data", Data)
        self.params = self._section("params", Params)

    def _section(self, name, schema):
        document = self._config.get(name) or {}
        if not isinstance(document, dict):
            refuse(name, self.find(CONFIG), "a mapping", document, WHOLE)
        # What is not read is of training.
        place = f"`{name}` of {self.find(CONFIG)}"
        return json_files.settings(schema, document, place, ANOTHER)[0]

    def _newest(self):
        """The prefix of the checkpoint that `checkpoint` names, or of the one with most steps."""
        prefixes = [path.with_suffix("") for path in self._folder.glob(f"*{INDEX}")]
        state = self._folder / STATE
        if state.exists():
            first = read_text(state).partition("\n")[0].partition(":")[2]
            name = pathlib.PurePosixPath(first.strip().strip('"')).name
            if self._folder / name not in prefixes:
                raise FileNotFoundError(
                    f"{state} names {name or 'none'}: {self._folder} has no such {INDEX}. {WHOLE}"
                )
            return self._folder / name
        return max(prefixes, key=lambda one: (len(one.name), one.name))

    def find(self, *names: str) -> pathlib.Path | None:
        """The nearest file of one of the names, which may have folders."""
        for name in names:
            parts = pathlib.PurePosixPath(name).parts
            inside = ".." not in parts and not name.startswith("/")
            for folder in self._all:
                for one in ([folder / name] if inside else []) + [folder / parts[-1]]:
                    if one.is_file():
                        return one
        return None

    def required(self, *names: str) -> pathlib.Path:
        """As `find`, and there must be one."""
        if path := self.find(*names):
            return path
        raise FileNotFoundError(
            f"{self._folder} has no {' or '.join(map(quote, names))}, nor have the folders above. "
            f"It has {listed(self._folder)}. {WHOLE}"
        )

    def pieces(self, side: str) -> list[str]:
        """The pieces of "source" or "target", without `<unk>`, which has the row behind them."""
        copy = f"model_examples_inputter_{SIDES[side]}_inputter_embedding.txt"
        named = getattr(self.data, f"{side}_vocabulary")
        path = (named and self.find(named)) or self.required(copy)
        lines = read_text(path, json_files.MOST_BYTES_OF_LISTS).removesuffix("\n").split("\n")
        pieces = lines[:-1] if path.name == copy else lines
        if pieces[: len(BLANK)] != BLANK:
            raise ValueError(f"{path} must begin with the lines {', '.join(BLANK)}. {ANOTHER}")
        if len(set(pieces)) < len(pieces) or "" in pieces:
            twice = next(one for one in pieces if not one or pieces.count(one) > 1)
            raise ValueError(f"{path} must name each piece once. Received: {quote(twice)}. {WHOLE}")
        return pieces

    def model_of_pieces(self, side: str) -> pathlib.Path | None:
        """The SentencePiece model of a side; None: text is cut at spaces."""
        place = f"`{side}_tokenization` of {self.find(CONFIG) or CONFIG}"
        said = getattr(self.data, f"{side}_tokenization")
        if said is None:
            beside = [sorted(folder.glob("*.model")) for folder in self._all]
            models = next(filter(None, beside), [None])
            if len(models) > 1:
                names = ", ".join(quote(one.name) for one in models)
                raise ValueError(f"{place} must name one of {names}. Received: nothing. Add it.")
            return models[0]
        if isinstance(said, str):
            said = read_yaml(self.required(said))
        kind = said.get("type", "OpenNMTTokenizer")
        if kind == "SpaceTokenizer":
            return None
        if kind not in TOKENIZERS:
            known = f"one of SpaceTokenizer, {', '.join(TOKENIZERS)}, for a graph cuts no other"
            refuse("type", place, known, kind, ANOTHER)
        params = (said.get("params") or {}) if "type" in said else said
        read, unknown = json_files.settings(TOKENIZERS[kind], params, place, ANOTHER)
        if unknown:
            refuse(unknown[0], place, "left out", params[unknown[0]], ANOTHER)
        return self.required(read.model)
