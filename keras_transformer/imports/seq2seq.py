"""What Hugging Face's translators MarianMT and M2M100 share: BART's names of weights (Lewis et al.
2020, "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation,
Translation, and Comprehension"), and the order of pieces.

Their decoder starts with PAD or EOS. Our BOS has a copy of that row. All other pieces follow our
special ones in their order.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, NEVER, Share, Size, Weight, linear, norm
from keras_transformer.imports.seq2seq_files import Generation
from keras_transformer.models import Hyperparameters, Transformer
from pipelines.json_files import refuse
from pipelines.special_ids import BOS

EPSILON = 1e-5
# Columns of a table that are reordered at once.
COLUMNS = 64
ACTIVATIONS = {**family.ACTIVATIONS, "swish": "swish"}
# Prefix of the layers' weights -> config key of their number.
LAYERS = {"encoder.layers": "encoder_layers", "decoder.layers": "decoder_layers"}
PREFIX = "model."
TIES = {"shared.weight": "lm_head.weight"}
# Maps of a layer and its norms: our names of sublayers -> theirs.
MAPS = {"self_attention": "self_attn.", "cross_attention": "encoder_attn.", "feed_forward": ""}
NORMS = {"self_attention": "self_attn", "cross_attention": "encoder_attn", "feed_forward": "final"}
PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
PARTS |= {"inner": "fc1", "outer": "fc2"}


class Config(family.Config, kw_only=True):
    """Keys of a translator's config.json."""

    FIXED: ClassVar = {**family.Config.FIXED, "is_decoder": (False,), "is_encoder_decoder": (True,)}
    HARMLESS: ClassVar = (
        *family.NOTES,
        *Generation.FIXED,
        *(field.name for field in msgspec.structs.fields(Generation)),
        *("classif_dropout", "classifier_dropout", "decoder_layerdrop", "encoder_layerdrop"),
        *("forced_eos_token_id", "init_std", "num_hidden_layers"),
    )
    MODEL: ClassVar = Transformer
    # The id of <unk>.
    UNKNOWN: ClassVar[int]

    vocab_size: Size
    d_model: Size
    encoder_layers: Size
    decoder_layers: Size
    encoder_attention_heads: Size
    decoder_attention_heads: Size
    encoder_ffn_dim: Size
    decoder_ffn_dim: Size
    pad_token_id: family.Natural
    eos_token_id: family.Natural
    decoder_start_token_id: family.Natural
    activation_function: Literal[tuple(ACTIVATIONS)] = "relu"
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    activation_dropout: Share = 0.0
    max_position_embeddings: Size = 1024
    scale_embedding: bool = False
    tie_word_embeddings: bool = True

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of rows of the source's and the target's table."""
        return self.vocab_size, self.vocab_size

    @property
    def pieces(self) -> int:
        """V, which includes our BOS."""
        return max(self.sizes()) + 1

    def order(self, rows: int) -> np.ndarray:
        """Return the row of each of our ids in their table, which has so many rows."""
        ours = [self.pad_token_id, self.UNKNOWN, self.decoder_start_token_id, self.eos_token_id]
        theirs = [self.pad_token_id, self.UNKNOWN, self.eos_token_id]
        return np.concatenate([ours, np.setdiff1d(np.arange(rows), theirs)])


def hyperparameters(config: Config, **variants: Any) -> Hyperparameters:
    for name in ("attention_heads", "ffn_dim"):
        encoder, decoder = (getattr(config, f"{side}_{name}") for side in ("encoder", "decoder"))
        if encoder != decoder:
            expected = f"encoder_{name}, {encoder}"
            refuse(f"decoder_{name}", "config.json", expected, decoder, ANOTHER)
    least = min(config.sizes())
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        value = getattr(config, name)
        if value >= least or value == config.UNKNOWN:
            expected = f"an id below {least} other than that of <unk>, {config.UNKNOWN}"
            refuse(name, "config.json", expected, value, ANOTHER)
    if config.pad_token_id == config.eos_token_id or least <= config.UNKNOWN:
        expected = "another id than eos_token_id"
        refuse("pad_token_id", "config.json", expected, config.pad_token_id, ANOTHER)
    return Hyperparameters(
        vocabulary_size=config.pieces,
        num_layers=config.encoder_layers,
        num_decoder_layers=config.decoder_layers,
        d_model=config.d_model,
        d_ff=config.encoder_ffn_dim,
        num_heads=config.encoder_attention_heads,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
        activation=ACTIVATIONS[config.activation_function],
        attention_bias=True,
        output_bias=True,
        norm_epsilon=EPSILON,
        scaled_embeddings=config.scale_embedding,
        **variants,
    )


def rows(config: Config, table: np.ndarray) -> np.ndarray:
    """Put the rows of a table (V', d_model) into the order of our ids, and pad it with zeros to the
    size of the larger table. This is done in place: a copy would double the memory.
    """
    order = config.order(len(table))
    table.resize((config.pieces, table.shape[1]), refcheck=False)
    for begin in range(0, table.shape[1], COLUMNS):
        columns = slice(begin, begin + COLUMNS)
        table[: len(order), columns] = table[order, columns]
    return table


def bias(config: Config, theirs: np.ndarray) -> np.ndarray:
    """Put their output bias (V',) into the order of our ids; bar BOS."""
    order = config.order(len(theirs))
    ours = np.full(config.pieces, NEVER, theirs.dtype)
    ours[: len(order)] = theirs[order]
    ours[BOS] = NEVER
    return ours


def layers(config: Config) -> Iterator[Weight]:
    """Yield the weights of the layers of both stacks."""
    width = config.d_model

    def of_map(ours, stack, number, sublayer, part, inputs, outputs):
        theirs = f"{stack}.layers.{number}.{MAPS[sublayer]}{PARTS[part]}"
        return linear(ours, theirs, outputs, inputs)

    def of_norm(ours, stack, number, sublayer):
        return norm(ours, f"{stack}.layers.{number}.{NORMS[sublayer]}_layer_norm", width)

    depths = (config.encoder_layers, config.decoder_layers)
    return family.layers(depths, width, config.encoder_ffn_dim, of_map, of_norm)
