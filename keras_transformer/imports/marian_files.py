"""The files of a model of Marian, and the base class of its folder and of OpenNMT-tf's."""

import contextlib
import os
import pathlib
import zipfile
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, RELEASE, ArraysByPath, Factor, Size
from keras_transformer.imports.hugging_face import assign, unused_line
from keras_transformer.models import Transformer
from pipelines import json_files, needing
from pipelines.json_files import Schema, quote, read_text, regular_file
from pipelines.whole_files import DAMAGE

# Switches of a model that must be off.
UNSET = (
    *("output-omit-bias", "right-left", "tied-embeddings-src"),
    *("transformer-disable-position-embeddings", "transformer-no-affine"),
    *("transformer-no-bias", "transformer-no-projection", "transformer-pool"),
    *("transformer-rnn-projection", "transformer-train-position-embeddings"),
    *("transformer-train-positions", "ulr"),
)


class TranslatorFolder:
    """The folder of a translator, of Marian or of OpenNMT-tf. Subclasses have `hyperparameters`, a
    `table` of weights, and `_weights`, the arrays by their names. `unused` has the pieces of a file
    that the vocabulary lacks.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        self.unused = {}

    def _check_shapes(self):
        check = "its settings and its vocabularies belong to it"
        for weight in self.table():
            if name := weight.theirs:
                place = f"{self._weights.path}: the weight {name}"
                family.require_shape(self._weights.shape(name), weight.shape, place, check)

    def model(self) -> Transformer:
        model = Transformer(self.hyperparameters)
        assign(model, ArraysByPath(self.table(), self._weights), self.path)
        return model

    def unused_parts(self) -> str:
        """List what the import did not use, in one line; "" if nothing. Call it after `model`."""
        return unused_line(self.path, {**self.unused, "weights": self._weights.unread()})


class Decoder(Schema, rename="kebab"):
    """Keys of decoder.yml."""

    FIXED: ClassVar = {"word-penalty": (0, 0.0), "skip-cost": (False,), "output-sampling": (False,)}
    # We ignore max-length and translate a longer source whole.
    HARMLESS: ClassVar = (
        *("relative-paths", "mini-batch", "maxi-batch", "maxi-batch-sort", "mini-batch-words"),
        *("workspace", "cpu-threads", "devices", "n-best", "quiet", "quiet-translation", "log"),
        *("max-length", "max-length-crop"),
    )

    models: list[str]
    vocabs: list[str]
    beam_size: Size = 12
    normalize: Factor = 0.0
    allow_unk: bool = False
    max_length_factor: Annotated[float, msgspec.Meta(ge=0.01, le=1e5)] = 3.0


class Config(Schema, rename="kebab", kw_only=True):
    """Settings of a model, which its *.npz has."""

    FIXED: ClassVar = {
        **dict.fromkeys(UNSET, (False,)),
        "factors-dim-emb": (0,),
        "input-types": ([],),
        "lemma-dependency": ("",),
        "lemma-dim-emb": (0,),
        "transformer-attention-mask": ("default",),
        "transformer-decoder-ffn-depth": (0, 2),
        "transformer-ffn-depth": (2,),
    }
    # For recurrent models, other attentions and training.
    HARMLESS: ClassVar = (
        *("bert-train-type-embeddings", "bert-type-vocab-size", "char-conv-filters-num"),
        *("char-conv-filters-widths", "char-highway", "char-stride", "dec-cell"),
        *("dec-cell-base-depth", "dec-cell-high-depth", "dim-rnn", "dim-vocabs", "enc-cell"),
        *("enc-cell-depth", "enc-type", "factors-combine", "layer-normalization"),
        *("separator-symbol", "skip", "transformer-aan-activation", "transformer-aan-depth"),
        *("transformer-aan-nogate", "transformer-alibi-shift", "transformer-alibi-trainable"),
        *("transformer-depth-scaling", "transformer-dim-aan"),
        *("transformer-guided-alignment-layer", "ulr-dim-emb", "ulr-trainable-transformation"),
        "version",
    )

    type: Literal["transformer"]
    dim_emb: Size
    enc_depth: Size
    dec_depth: Size
    transformer_heads: Size
    transformer_dim_ffn: Size
    transformer_decoder_dim_ffn: int = 0
    transformer_ffn_activation: Literal["relu", "swish"]
    transformer_decoder_autoreg: Literal["self-attention"] = "self-attention"
    transformer_preprocess: str = ""
    transformer_postprocess: str = "dan"
    transformer_postprocess_emb: Literal["", "d"] = "d"
    transformer_postprocess_top: str = ""
    transformer_tied_layers: tuple[Size, ...] = ()
    tied_embeddings_all: bool = False
    tied_embeddings: bool = False


class Arrays:
    """The arrays of an .npz, read on access. Pickles are refused."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._read = set()
        try:
            with zipfile.ZipFile(regular_file(path)) as archive:
                self._names = [name.removesuffix(".npy") for name in archive.namelist()]
        except DAMAGE as error:
            raise ValueError(f"{path} is no .npz of Marian, or is damaged. {RELEASE}") from error

    def __contains__(self, name):
        return name in self._names

    @contextlib.contextmanager
    def _opened(self, name):
        """Open the file of an array. Damage to it raises a ValueError that names it."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as file:
                yield file
        except DAMAGE as error:
            raise ValueError(f"{self.path}: {quote(name)} is damaged. {RELEASE}") from error

    def read(self, name: str, dtype) -> np.ndarray:
        """Read an array, which must have this dtype."""
        self._read.add(name)
        with self._opened(name) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        if array.dtype != dtype:
            raise ValueError(
                f"{self.path}: {quote(name)} must be {np.dtype(dtype)}. Received: {array.dtype}. "
                f"{ANOTHER}"
            )
        return array

    def shape(self, name: str) -> tuple[int, ...]:
        """Read the shape of an array from its header."""
        if name not in self._names:
            raise ValueError(
                f"{self.path} lacks the weight {name}, which a model of its settings has. {RELEASE}"
            )
        with self._opened(name) as file:
            lib = np.lib.format
            major, _ = lib.read_magic(file)
            read_header = {1: lib.read_array_header_1_0, 2: lib.read_array_header_2_0}[major]
            return read_header(file)[0]

    def __getitem__(self, name: str) -> np.ndarray:
        array = self.read(name, np.float32)
        return family.require_finite(array, f"{self.path}: the weight {name}", ANOTHER)

    def unread(self) -> list[str]:
        """Return the names of arrays that were not read."""
        return [name for name in self._names if name not in self._read]


def settings_of(schema: type[Schema], document: Any, place: Any) -> Any:
    """Return the settings of a document. A key that the schema does not know is refused."""
    settings, unknown = json_files.settings(schema, document, place, ANOTHER)
    if unknown:
        names = ", ".join(map(quote, unknown[:8]))
        raise ValueError(f"{place} has settings that we do not know: {names}. {ANOTHER}")
    return settings


def read_yaml(path, most_bytes=json_files.MOST_BYTES, of_text=False) -> dict[str, Any]:
    return parse_yaml(read_text(path, most_bytes), path, of_text)


def parse_yaml(text, place, of_text=False):
    """Parse a YAML mapping. With `of_text` all keys and values stay strings, even no and 1_000."""
    with needing("imports", f"reading {place}"):
        import yaml
    fast = "CBaseLoader" if of_text else "CSafeLoader"
    loader = getattr(yaml, fast, yaml.BaseLoader if of_text else yaml.SafeLoader)
    try:
        document = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{place} is no YAML ({reason}). {RELEASE}") from error
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ValueError(f"{place} must be a mapping of names. {RELEASE}")
    return document
