"""The text files of a model of OpenNMT-tf: where they are, config.yml, and the pieces."""

import pathlib
from typing import Any, ClassVar, Literal

import msgspec

from keras_transformer.imports.family import ANOTHER, RELEASE, Factor, Natural, Size
from keras_transformer.imports.folder_files import listed
from keras_transformer.imports.marian_files import read_yaml, settings_of
from pipelines import json_files
from pipelines.json_files import Schema, quote, read_text, refuse

CONFIG = "config.yml"
DESCRIPTION = "model_description.py"
STATE = "checkpoint"
INDEX = ".index"
BLANK = ["<blank>", "<s>", "</s>"]
SIDES = {"source": "features", "target": "labels"}


class Data(Schema):
    """Keys of `data` in config.yml that concern the text."""

    FIXED: ClassVar = {"target_sequence_controls": (None, {"start": True, "end": True})}

    source_vocabulary: str = ""
    target_vocabulary: str = ""
    source_tokenization: dict[str, Any] | str | None = None
    target_tokenization: dict[str, Any] | str | None = None
    source_sequence_controls: dict[str, bool] | None = None


class Params(Schema):
    """Keys of `params` in config.yml that concern decoding."""

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
    """Settings of OpenNMT's Tokenizer with which a graph can cut text."""

    HARMLESS = ("sp_alpha", "sp_nbest_size")

    mode: Literal["none"]
    model: str = msgspec.field(name="sp_model_path")


class SentencePieceTokenizer(Schema):
    """Settings of a SentencePiece tokenizer."""

    HARMLESS = ("alpha", "nbest_size")

    model: str


TOKENIZERS = {kind.__name__: kind for kind in (OpenNMTTokenizer, SentencePieceTokenizer)}


def is_opennmt_tf(folder: pathlib.Path) -> bool:
    """Return whether a folder looks like a model_dir of OpenNMT-tf, or the one above it."""
    path = pathlib.Path(folder)
    has_config = (path / CONFIG).exists() or (path / DESCRIPTION).exists()
    return _has_checkpoint(path) or (has_config and any(map(_has_checkpoint, _folders(path))))


def _has_checkpoint(path):
    # Hugging Face's folders may have files of these names too.
    is_theirs = path.is_dir() and not (path / "config.json").exists()
    return is_theirs and ((path / STATE).exists() or any(path.glob(f"*{INDEX}")))


def _folders(path):
    return sorted(filter(pathlib.Path.is_dir, path.iterdir())) if path.is_dir() else []


class TextFiles:
    """The text files of a model: in the folder of its checkpoint, or in one of the two above.
    `data` and `params` are those of config.yml; without one, the defaults.
    """

    def __init__(self, folder: pathlib.Path):
        folders = [folder] if _has_checkpoint(folder) else _folders(folder)
        folders = list(filter(_has_checkpoint, folders))
        if len(folders) != 1:
            raise ValueError(
                f"{folder} must have one folder with a checkpoint. It has {listed(folder)}. Name "
                "the one that you want."
            )
        [self._folder] = folders
        self._places = [self._folder, *list(self._folder.resolve().parents)[:2]]
        self.prefix = self._newest()
        self._config = read_yaml(path) if (path := self.find(CONFIG)) else {}
        self.data = self._section("data", Data)
        self.params = self._section("params", Params)

    def _section(self, name, schema):
        # Keys that the schema does not know concern training.
        place = f"`{name}` of {self.find(CONFIG)}"
        return json_files.settings(schema, self._config.get(name) or {}, place, ANOTHER)[0]

    def _newest(self):
        """Return the prefix of the checkpoint that `checkpoint` names, or of the newest one."""
        prefixes = [path.with_suffix("") for path in self._folder.glob(f"*{INDEX}")]
        state = self._folder / STATE
        if state.exists():
            quoted = read_text(state).partition("\n")[0].partition(":")[2]
            name = pathlib.PurePosixPath(quoted.strip().strip('"')).name
            if self._folder / name not in prefixes:
                raise FileNotFoundError(
                    f"{state} names {name or 'none'}: {self._folder} has no such {INDEX}. {RELEASE}"
                )
            return self._folder / name
        return max(prefixes, key=lambda prefix: (len(prefix.name), prefix.name))

    def find(self, *names: str) -> pathlib.Path | None:
        """Return the nearest file with one of the names, the first name first; None without any."""
        for name in names:
            own = pathlib.PurePosixPath(name)
            is_inside = not own.is_absolute() and ".." not in own.parts
            for folder in self._places:
                for path in ([folder / own] if is_inside else []) + [folder / own.name]:
                    if path.is_file():
                        return path
        return None

    def required(self, *names: str) -> pathlib.Path:
        """Return what `find` does; raise an error if there is no such file."""
        if path := self.find(*names):
            return path
        raise FileNotFoundError(
            f"{self._folder} has no {' or '.join(map(quote, names))}, nor have the folders above. "
            f"It has {listed(self._folder)}. {RELEASE}"
        )

    def pieces(self, side: str) -> list[str]:
        """Read the pieces of "source" or "target", without <unk>, whose row follows them."""
        copy = f"model_examples_inputter_{SIDES[side]}_inputter_embedding.txt"
        name = getattr(self.data, f"{side}_vocabulary")
        path = self.required(*filter(None, (name, copy)))
        lines = read_text(path, json_files.MOST_BYTES_OF_LISTS).removesuffix("\n").split("\n")
        pieces = lines[:-1] if path.name == copy else lines
        if pieces[: len(BLANK)] != BLANK:
            raise ValueError(f"{path} must begin with the lines {', '.join(BLANK)}. {ANOTHER}")
        if len(set(pieces)) < len(pieces) or "" in pieces:
            wrong = next(piece for piece in pieces if not piece or pieces.count(piece) > 1)
            raise ValueError(
                f"{path} must name each piece once. Received: {quote(wrong)}. {RELEASE}"
            )
        return pieces

    def model_of_pieces(self, side: str) -> pathlib.Path | None:
        """Return the SentencePiece model of a side; None if text is split at spaces."""
        place = f"`{side}_tokenization` of {self.find(CONFIG) or CONFIG}"
        tokenization = getattr(self.data, f"{side}_tokenization")
        if tokenization is None:
            in_folders = [sorted(folder.glob("*.model")) for folder in self._places]
            models = next(filter(None, in_folders), [None])
            if len(models) > 1:
                names = ", ".join(quote(model.name) for model in models)
                raise ValueError(f"{place} must name one of {names}. Received: nothing. Add it.")
            return models[0]
        if isinstance(tokenization, str):
            tokenization = read_yaml(self.required(tokenization))
        kind = tokenization.get("type", "OpenNMTTokenizer")
        if kind == "SpaceTokenizer":
            return None
        if not isinstance(kind, str) or kind not in TOKENIZERS:
            kinds = f"one of SpaceTokenizer, {', '.join(TOKENIZERS)}: a graph supports no other"
            refuse("type", place, kinds, kind, ANOTHER)
        has_type = "type" in tokenization
        params = (tokenization.get("params") or {}) if has_type else tokenization
        return self.required(settings_of(TOKENIZERS[kind], params, place).model)
