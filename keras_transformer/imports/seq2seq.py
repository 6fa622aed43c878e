"""What Hugging Face's translators share, MarianMT and M2M100: names of weights, which are BART's
(Lewis et al. 2020, "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language
Generation, Translation, and Comprehension"), and the order of pieces.

Their decoder begins with a piece that is something else too, PAD or EOS: our BOS has that row once
more. All other pieces keep their order behind our special ones.
"""

import operator
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
# Of a table that are put in order at once.
COLUMNS = 64
ACTIVATIONS = {**family.ACTIVATIONS, "swish": "swish"}
# The numbers of layers, and what the names of a layer's weights begin with.
LAYERS = {"encoder.layers": "encoder_layers", "decoder.layers": "decoder_layers"}
# The name of a weight without the prefix.
plain_name = operator.methodcaller("removeprefix", "model.")
# Maps of a layer and its norms, by our names of sublayers.
MAPS = {"self_attention": "self_attn.", "cross_attention": "encoder_attn.", "feed_forward": ""}
NORMS = {"self_attention": "self_attn", "cross_attention": "encoder_attn", "feed_forward": "final"}
PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
PARTS |= {"inner": "fc1", "outer": "fc2"}


class Config(family.Config, kw_only=True):
    """What a translator's config.json may say."""

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
        """Rows of the tables of source and target."""
        return self.vocab_size, self.vocab_size

    @property
    def pieces(self) -> int:
        """V, with our BOS."""
        return max(self.sizes()) + 1

    def order(self, rows: int) -> np.ndarray:
        """Their row of each of our ids, of a table of so many."""
        own = self.pad_token_id, self.UNKNOWN, self.eos_token_id
        others = np.setdiff1d(np.arange(rows), own)
        return np.concatenate([own[:2], [self.decoder_start_token_id], own[2:], others])


def hyperparameters(config: Config, **variants: Any) -> Hyperparameters:
    for name in ("attention_heads", "ffn_dim"):
        both = {side: getattr(config, f"{side}_{name}") for side in ("encoder", "decoder")}
        if both["encoder"] != both["decoder"]:
            wanted = f"encoder_{name}, {both['encoder']}"
            refuse(f"decoder_{name}", "config.json", wanted, both["decoder"], ANOTHER)
    least = min(config.sizes())
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        value = getattr(config, name)
        if value >= least or value == config.UNKNOWN:
            wanted = f"an id below {least} other than that of <unk>, {config.UNKNOWN}"
            refuse(name, "config.json", wanted, value, ANOTHER)
    if config.pad_token_id == config.eos_token_id or least <= config.UNKNOWN:
        wanted = "another id than eos_token_id"
        refuse("pad_token_id", "config.json", wanted, config.pad_token_id, ANOTHER)
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
    """Rows of a table (V', d_model) in the order of our ids, filled up with zeros to the size of
    the larger table. It is changed in place, for a second one would take as much memory.
    """
    order = config.order(len(table))
    table.resize((config.pieces, table.shape[1]), refcheck=False)
    for begin in range(0, table.shape[1], COLUMNS):
        columns = slice(begin, begin + COLUMNS)
        table[: len(order), columns] = table[order, columns]
    return table


def bias(config: Config, theirs: np.ndarray) -> np.ndarray:
    """Their output bias (V',) in the order of our ids; no BOS is ever written."""
    order = config.order(len(theirs))
    made = np.full(config.pieces, NEVER, theirs.dtype)
    made[: len(order)] = theirs[order]
    made[BOS] = NEVER
    return made


def layers(config: Config) -> Iterator[Weight]:
    """The weights of both stacks, without final norms."""
    width = config.d_model

    def of_map(ours, stack, number, sublayer, part, inputs, outputs):
        theirs = f"{stack}.layers.{number}.{MAPS[sublayer]}{PARTS[part]}"
        return linear(ours, theirs, outputs, inputs)

    def of_norm(ours, stack, number, sublayer):
        return norm(ours, f"{stack}.layers.{number}.{NORMS[sublayer]}_layer_norm", width)

    depths = (config.encoder_layers, config.decoder_layers)
    return family.layers(depths, width, config.encoder_ffn_dim, of_map, of_norm)
