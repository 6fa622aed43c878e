"""A translator that OpenNMT-tf 2 trained as a `Transformer` (Klein et al. 2017, "OpenNMT: Open-
Source Toolkit for Neural Machine Translation").

Its model_dir has a TensorFlow checkpoint, model_description.py and the vocabularies; config.yml and
the SentencePiece models are there or in a folder above. Positions count from 1, with sines in the
first half of the columns and cosines in the second. Sources have no EOS unless config.yml adds it.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, NEVER, RELEASE, Weight
from keras_transformer.imports.marian_files import TranslatorFolder
from keras_transformer.imports.opennmt_tf_checkpoint import Checkpoint, read_description
from keras_transformer.imports.opennmt_tf_files import BLANK, CONFIG, DESCRIPTION, SIDES, TextFiles
from keras_transformer.models import Hyperparameters
from pipelines.json_files import read_text, refuse
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.other_order import SPECIAL, read_in_order, word_model
from pipelines.vocabularies.vocabulary import Vocabulary

# Rows of its tables for our PAD, UNK, BOS and EOS.
ROWS = (0, -1, 1, 2)
EPSILON = 1e-3
CONTROLS = "source_sequence_controls"
EMBEDDING = "model/examples_inputter/{}_inputter/embedding"
FIRST = "model/encoder/layers/0"
KERNEL = "model/decoder/output_layer/kernel"
OUTPUT_BIAS = "model/decoder/output_layer/bias"
ACTIVATIONS = {"nn.relu": "relu", "nn.gelu": "gelu", "layers.gelu": "gelu_tanh"}
ACTIVATIONS |= {"nn.swish": "swish", "nn.silu": "swish"}
# Sublayers of a layer, and their maps: our names -> theirs.
SUBLAYERS = {"self_attention": "self_attention", "cross_attention": "attention/0"}
SUBLAYERS |= {"feed_forward": "ffn"}
MAPS = {"query": "linear_queries", "key": "linear_keys", "value": "linear_values"}
MAPS |= {"output": "linear_output", "inner": "inner", "outer": "outer"}


class OpenNMTFolder(TranslatorFolder):
    """The folder of a translator of OpenNMT-tf: a model_dir, its avg/, or a folder that has one of
    these. The constructor checks it and allocates no weights.
    """

    def __init__(self, folder: str | os.PathLike):
        super().__init__(folder)
        self._files = TextFiles(self.path)
        self._weights = Checkpoint(self._files.prefix)
        self._pieces = {side: self._files.pieces(side) for side in SIDES}
        self._description = self._files.required(DESCRIPTION)
        self._arguments = read_description(self._description)
        # V: the rows of the larger table.
        self._size = max(map(len, self._pieces.values())) + 1
        self._width = self._weights.shape(EMBEDDING.format("labels"))[-1]
        self._inner = self._weights.shape(f"{FIRST}/ffn/layer/inner/bias")[0]
        self._is_pre = f"{FIRST}/ffn/input_layer_norm" in self._weights
        self._has_attention_bias = f"{FIRST}/self_attention/layer/linear_keys/bias" in self._weights
        self._has_output_bias = OUTPUT_BIAS in self._weights
        self._check_description()
        self._check_shapes()

    def _check_description(self):
        """Refuse a description that contradicts the checkpoint, or a model that we lack."""
        arguments = self._arguments
        expected = {
            "num_units": self._width,
            "ffn_inner_dim": self._inner,
            "pre_norm": self._is_pre,
            "mha_bias": self._has_attention_bias,
            "output_layer_bias": self._has_output_bias,
            "maximum_relative_position": None,
        }
        depths = arguments["num_layers"]
        depths = tuple(depths) if isinstance(depths, list | tuple) else (depths, depths)
        arguments["num_layers"] = depths
        expected["num_layers"] = tuple(
            self._weights.count(f"model/{stack}/layers") for stack in ("encoder", "decoder")
        )
        for name, value in expected.items():
            if (own := arguments[name]) != value:
                refuse(name, self._description, f"{value}, as in the checkpoint", own, RELEASE)
        controls = self._files.data.source_sequence_controls
        if controls is None and CONTROLS in read_text(self._description):
            reason = f"set, because {self._description.name} has its own"
            place = f"`data` of {self._files.find(CONFIG) or CONFIG}"
            refuse(CONTROLS, place, reason, None, "Write what the model was trained with.")
        controls = {"end": arguments.get("source_end", False), **(controls or {})}
        if controls.get("start"):
            place = f"`{CONTROLS}` of {self._files.find(CONFIG)}"
            refuse("start", place, "false, because our sources have none", True, ANOTHER)
        self._source_end = controls["end"]
        heads = arguments["num_heads"]
        if not isinstance(heads, int) or not 0 < heads <= self._width or self._width % heads:
            refuse("num_heads", self._description, f"a divisor of {self._width}", heads, RELEASE)
        sinusoids = ["SinusoidalPositionEncoder"]
        choices = {"ffn_activation": ACTIVATIONS, "position_encoder_class": sinusoids}
        for name, ends in choices.items():
            if not str(arguments[name]).endswith(tuple(ends)):
                refuse(name, self._description, " or ".join(ends), arguments[name], ANOTHER)

    @property
    def _ties(self):
        source, target = (self._weights.key(EMBEDDING.format(side)) for side in SIDES.values())
        if self._weights.key(KERNEL) != target:
            return "none"
        return "three_way" if source == target else "decoder"

    @property
    def hyperparameters(self) -> Hyperparameters:
        encoder_layers, decoder_layers = self._arguments["num_layers"]
        activation = self._arguments["ffn_activation"]
        return Hyperparameters(
            vocabulary_size=self._size,
            num_layers=encoder_layers,
            num_decoder_layers=decoder_layers,
            d_model=self._width,
            d_ff=self._inner,
            num_heads=self._arguments["num_heads"],
            norm="pre" if self._is_pre else "post",
            activation=next(ours for end, ours in ACTIVATIONS.items() if activation.endswith(end)),
            positions="tensor2tensor",
            first_position=1,
            tie_embeddings=self._ties,
            attention_bias=self._has_attention_bias,
            norm_epsilon=EPSILON,
            output_bias=True,
            source_end=self._source_end,
        )

    def decoding(self) -> dict[str, Any]:
        """Return the settings of config.yml as arguments of `DecodingOptions`."""
        params = self._files.params
        # Our lengths include EOS.
        longest = params.maximum_decoding_length + 1
        return {
            "beam_size": params.beam_width,
            "length_penalty": params.length_penalty,
            "beam_form": "staying",
            "max_length": str(longest),
            "min_length": str(min(params.minimum_decoding_length + 1, longest)),
        }

    def vocabulary(self) -> SeparateVocabularies:
        """Return the vocabularies of source and target: our special pieces, then theirs."""
        return SeparateVocabularies(*map(self._vocabulary, SIDES))

    def _vocabulary(self, side):
        ordinary = self._pieces[side][len(BLANK) :]
        ordinary += [f"<unused {n}>" for n in range(self._size - len(SPECIAL) - len(ordinary))]
        path = self._files.model_of_pieces(side)
        if path is None:
            return Vocabulary(word_model(ordinary))
        return read_in_order(path, ordinary, RELEASE, self.unused)

    def table(self) -> Iterator[Weight]:
        """Yield the weights of the model. Their matrices have (inputs, outputs), as ours."""
        width = self._width
        source, target = (len(pieces) + 1 for pieces in self._pieces.values())
        bias = OUTPUT_BIAS if self._has_output_bias else None

        def bias_by_our_ids(array):
            return self._by_our_ids(np.zeros(target, np.float32) if array is None else array, NEVER)

        yield from family.tables(
            self._ties,
            (EMBEDDING.format("labels"), (target, width), self._by_our_ids),
            (EMBEDDING.format("features"), (source, width), self._by_our_ids),
            (KERNEL, (width, target), lambda array: self._by_our_ids(array.T)),
            (bias, (target,), bias_by_our_ids),
        )
        depths = self._arguments["num_layers"]
        yield from family.layers(depths, width, self._inner, self._linear, self._norm_of_layer)
        for stack in family.ATTENTIONS if self._is_pre else ():
            yield from self._norm(f"{stack}/final_norm", f"model/{stack}/layer_norm")

    def _linear(self, ours, stack, number, sublayer, part, rows, columns):
        place = f"model/{stack}/layers/{number}/{SUBLAYERS[sublayer]}/layer/{MAPS[part]}"
        yield Weight(ours.format("kernel"), f"{place}/kernel", (rows, columns))
        if self._has_attention_bias or sublayer == "feed_forward":
            yield Weight(ours.format("bias"), f"{place}/bias", (columns,))

    def _norm_of_layer(self, ours, stack, number, sublayer):
        name = "input_layer_norm" if self._is_pre else "output_layer_norm"
        theirs = f"model/{stack}/layers/{number}/{SUBLAYERS[sublayer]}/{name}"
        yield from self._norm(ours, theirs)

    def _norm(self, ours, theirs):
        for part in ("gamma", "beta"):
            yield Weight(f"{ours}/{part}", f"{theirs}/{part}", (self._width,))

    def _by_our_ids(self, rows, missing=0.0):
        """Put rows (V, ...) into the order of our ids; pad to the size of the larger table."""
        ordered = np.full((self._size, *rows.shape[1:]), missing, rows.dtype)
        ordered[: len(SPECIAL)] = rows[list(ROWS)]
        ordered[len(SPECIAL) : len(rows)] = rows[len(BLANK) : -1]
        return ordered
