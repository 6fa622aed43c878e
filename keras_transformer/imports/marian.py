"""A translator that Marian trained, such as a release of OPUS-MT, as a `Transformer` (Junczys-
Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann and Thottingal
2020, "OPUS-MT: Building open translation services for the World").

Its folder has decoder.yml, the weights (*.npz, which also has the model's settings), and the
pieces: *.yml with source.spm and target.spm, or one *.spm. Positions are sines in the first half of
the columns and cosines in the second.
"""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.imports import family, marian_files
from keras_transformer.imports.family import ANOTHER, NEVER, RELEASE, Weight
from keras_transformer.imports.folder_files import required_file
from keras_transformer.imports.marian_files import Arrays, read_yaml, settings_of
from keras_transformer.imports.preprocessing import PREPROCESS, read_rules
from keras_transformer.models import Hyperparameters
from pipelines.json_files import quote, refuse
from pipelines.special_ids import EOS, UNK
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.model_proto import message
from pipelines.vocabularies.other_order import SPECIAL, read_in_order, read_model

DECODER = "decoder.yml"
SETTINGS = "special:model.yml"
SPM = ("source.spm", "target.spm")
OF_SENTENCE_PIECE = ".spm"
# For comparison: a vocabulary of 260,000 pieces has 6 MB.
MOST_BYTES_OF_PIECES = 2**26
# Steps before a sublayer, after it and after the stack, without dropout -> our norm.
STEPS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
# Sublayers of a layer, their maps and their norms: our names -> theirs.
SUBLAYERS = {"self_attention": "self", "cross_attention": "context", "feed_forward": "ffn"}
PARTS = {"query": "q", "key": "k", "value": "v", "output": "o", "inner": 1, "outer": 2}
NORMS = {"self_attention": "self_Wo", "cross_attention": "context_Wo", "feed_forward": "ffn_ffn"}
OUTPUT = "decoder_ff_logit_out"
END = "</s>"
UNKNOWN = "<unk>"


class MarianFolder(marian_files.TranslatorFolder):
    """The folder of a translator of Marian. The constructor checks it and allocates no weights."""

    def __init__(self, folder: str | os.PathLike):
        super().__init__(folder)
        path = self._file(DECODER)
        self.decoder = settings_of(marian_files.Decoder, read_yaml(path), path)
        if len(self.decoder.models) != 1:
            refuse("models", path, "one file", self.decoder.models, ANOTHER)
        self._weights = Arrays(self._file(self.decoder.models[0]))
        if SETTINGS not in self._weights:
            raise ValueError(
                f"{self._weights.path} lacks {SETTINGS}: it is no model of Marian. {RELEASE}"
            )
        text = bytes(self._weights.read(SETTINGS, np.int8)).rstrip(b"\0").decode("utf-8", "replace")
        place = f"{SETTINGS} of {self._weights.path}"
        self.config = settings_of(marian_files.Config, marian_files.parse_yaml(text, place), place)
        self._placement = self._norm_placement()
        tied = "decoder" if self.config.tied_embeddings else "none"
        self._ties = "three_way" if self.config.tied_embeddings_all else tied
        self._pieces = self._read_pieces()
        self._check_shapes()

    def _file(self, name):
        if pathlib.PurePath(name).parts != (pathlib.PurePath(name).name,):
            raise ValueError(
                f"{self.path / DECODER} must name files beside it. Received: {quote(name)}. "
                f"{RELEASE}"
            )
        remedy = RELEASE
        if name in SPM and list(self.path.glob("*.bpe")):
            remedy = f"Its *.bpe needs Moses' tokenizer, which no SavedModel has. {RELEASE}"
        return required_file(self.path, name, remedy)

    def _norm_placement(self):
        """Return our name of the placement of norms; refuse one that we lack."""
        config = self.config
        places = ("preprocess", "postprocess", "postprocess_top")
        steps = tuple(getattr(config, f"transformer_{place}").replace("d", "") for place in places)
        if steps not in STEPS:
            forms = " or ".join(map("/".join, STEPS))
            raise ValueError(
                f"transformer-preprocess, -postprocess and -postprocess-top of {self.path} must be "
                f"{forms}, dropout aside. Received: {'/'.join(steps)}. {ANOTHER}"
            )
        inner = config.transformer_decoder_dim_ffn
        if inner not in (0, config.transformer_dim_ffn):
            expected = f"that of the encoder, {config.transformer_dim_ffn}"
            refuse("transformer-decoder-dim-ffn", self._weights.path, expected, inner, ANOTHER)
        return STEPS[steps]

    def _read_pieces(self):
        """Read the vocabulary, which both languages must share: pieces by Marian's ids."""
        names = self.decoder.vocabs
        vocabularies = [self._read_vocabulary(name) for name in dict.fromkeys(names)]
        if len(names) != 2 or vocabularies[0] != vocabularies[-1]:
            raise ValueError(
                f"`vocabs` of {self.path / DECODER} must be one vocabulary for both languages, "
                f"named twice. Received: {', '.join(names)}. {ANOTHER}"
            )
        return vocabularies[0]

    def _read_vocabulary(self, name):
        path = self._file(name)
        if path.suffix == OF_SENTENCE_PIECE:
            model = message().FromString(read_model(path, RELEASE))
            pieces = [entry.piece for entry in model.pieces]
        else:
            ids = read_yaml(path, MOST_BYTES_OF_PIECES, of_text=True)
            # Python converts at most 4,300 digits.
            ids = {piece: int(n[:20]) if str(n).isdecimal() else n for piece, n in ids.items()}
            pieces = family.pieces_by_id(ids, path, RELEASE)
        for name in (END, UNKNOWN):
            if name not in pieces:
                raise ValueError(f"{path} lacks the piece {name}. {RELEASE}")
        return pieces

    @property
    def hyperparameters(self) -> Hyperparameters:
        config = self.config
        return Hyperparameters(
            vocabulary_size=len(self._pieces) + 2,
            num_layers=config.enc_depth,
            num_decoder_layers=config.dec_depth,
            d_model=config.dim_emb,
            d_ff=config.transformer_dim_ffn,
            num_heads=config.transformer_heads,
            norm=self._placement,
            activation=config.transformer_ffn_activation,
            positions="tensor2tensor",
            tie_embeddings=self._ties,
            attention_bias=True,
            output_bias=True,
        )

    def decoding(self) -> dict[str, Any]:
        """Return the settings of decoder.yml as arguments of `DecodingOptions`."""
        decoder = self.decoder
        return {
            "beam_size": decoder.beam_size,
            "length_penalty": decoder.normalize,
            "length_penalty_form": "length",
            "beam_form": "shrinking",
            "max_length": f"{decoder.max_length_factor:g}x",
            "min_length": "1",
            "barred": () if decoder.allow_unk else (UNK,),
        }

    def vocabulary(self) -> SeparateVocabularies:
        """Return the vocabularies of source and target, whose ids are those of one table."""
        ordinary = [piece for piece in self._pieces if piece not in (END, UNKNOWN)]
        script = self.path / PREPROCESS
        rules = read_rules(script) if script.exists() else ()
        sides = []
        for vocab, spm, of_side in zip(self.decoder.vocabs, SPM, (rules, ()), strict=True):
            path = self._file(vocab if vocab.endswith(OF_SENTENCE_PIECE) else spm)
            sides.append(read_in_order(path, ordinary, RELEASE, self.unused, rules=of_side))
        return SeparateVocabularies(*sides)

    def table(self) -> Iterator[Weight]:
        """Yield the weights of the model. Marian's matrices have (inputs, outputs), as ours."""
        config = self.config
        width = config.dim_emb
        pieces = len(self._pieces)
        of_target = "Wemb" if config.tied_embeddings_all else "decoder_Wemb"
        yield from family.tables(
            self._ties,
            (of_target, (pieces, width), self._by_our_ids),
            ("encoder_Wemb", (pieces, width), self._by_our_ids),
            (f"{OUTPUT}_W", (width, pieces), lambda array: self._by_our_ids(array.T)),
            (f"{OUTPUT}_b", (1, pieces), lambda array: self._by_our_ids(array[0], NEVER)),
        )
        depths = (config.enc_depth, config.dec_depth)
        inner = config.transformer_dim_ffn
        yield from family.layers(depths, width, inner, self._linear, self._norm_of_layer)
        for side in ("encoder", "decoder") if config.transformer_postprocess_top else ():
            yield from self._norm_weights(f"{side}/final_norm", f"{side}_top_ln")

    def _layer(self, stack, number):
        tied = self.config.transformer_tied_layers if stack == "decoder" else ()
        return f"{stack}_l{tied[number] if number < len(tied) else number + 1}"

    def _linear(self, ours, stack, number, sublayer, part, rows, columns):
        place = f"{self._layer(stack, number)}_{SUBLAYERS[sublayer]}"
        letter = PARTS[part]
        yield Weight(ours.format("kernel"), f"{place}_W{letter}", (rows, columns))
        yield Weight(ours.format("bias"), f"{place}_b{letter}", (1, columns), np.ravel)

    def _norm_of_layer(self, ours, stack, number, sublayer):
        yield from self._norm_weights(ours, f"{self._layer(stack, number)}_{NORMS[sublayer]}_ln")

    def _norm_weights(self, ours, theirs):
        width = (1, self.config.dim_emb)
        yield Weight(f"{ours}/gamma", f"{theirs}_scale", width, np.ravel)
        yield Weight(f"{ours}/beta", f"{theirs}_bias", width, np.ravel)

    def _by_our_ids(self, rows, missing=0.0):
        """Put rows (V, ...) into the order of our ids. BOS stays 0, as Marian's start embedding."""
        ordinary = [n for n, piece in enumerate(self._pieces) if piece not in (END, UNKNOWN)]
        ordered = np.full((len(rows) + 2, *rows.shape[1:]), missing, rows.dtype)
        ordered[UNK] = rows[self._pieces.index(UNKNOWN)]
        ordered[EOS] = rows[self._pieces.index(END)]
        ordered[len(SPECIAL) :] = rows[ordinary]
        return ordered


def is_marian(folder: str | os.PathLike) -> bool:
    """Return whether a folder looks like one of Marian."""
    path = pathlib.Path(folder)
    has_arrays = path.is_dir() and any(path.glob("*.npz"))
    return (path / DECODER).exists() or (has_arrays and not (path / "config.json").exists())
