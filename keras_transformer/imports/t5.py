"""T5 (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer") and its version 1.1, such as flan-T5, as a `Transformer`.

Its attention is not scaled, its norms subtract no mean, and all layers share the relative biases of
the first. Its feed-forward networks have no biases: ours are 0. Its special ids are PAD 0, EOS 1,
UNK 2, and it starts with PAD; ours are PAD 0, UNK 1, BOS 2, EOS 3, so rows are reordered. All other
ids stay, except 3, which moves to the end.
"""

from collections.abc import Collection, Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np
import sentencepiece

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, NEVER, Epsilon, Natural, Share, Size, Weight
from keras_transformer.imports.folder_files import SettingsFiles, required_file
from keras_transformer.models import Hyperparameters, Transformer
from pipelines.json_files import Schema, refuse
from pipelines.special_ids import BOS
from pipelines.vocabularies.other_order import in_order, read_model
from pipelines.vocabularies.vocabulary import Vocabulary

MODEL_TYPE = "t5"
LAYERS = {"encoder.block": "num_layers", "decoder.block": "num_decoder_layers"}
BUCKETS = 32
PREFIX = ""
TIES = {"shared.weight": "decoder.embed_tokens.weight"}
# Rows of its table for our PAD, UNK, BOS and EOS.
SPECIAL = (0, 2, 0, 1)
ATTENTION = {"q": "query_kernel", "k": "key_kernel", "v": "value_kernel", "o": "output_kernel"}
# {stack: {number in a layer: (its sublayer, ours)}}.
SUBLAYERS = {
    "encoder": {0: ("SelfAttention", "self_attention")},
    "decoder": {0: ("SelfAttention", "self_attention"), 1: ("EncDecAttention", "cross_attention")},
}
# `feed_forward_proj` -> our activation, and our maps -> its.
FEED_FORWARDS = {
    "relu": ("relu", {"inner": "wi", "outer": "wo"}),
    "gated-gelu": ("geglu", {"inner": "wi_0", "linear": "wi_1", "outer": "wo"}),
}
PIECES = "spiece.model"
PROJECTION = "lm_head.weight"


class Config(family.Config, kw_only=True):
    """Keys of a T5's config.json."""

    FIXED: ClassVar = {
        **family.Config.FIXED,
        "decoder_start_token_id": (0,),
        "eos_token_id": (1,),
        "is_decoder": (False,),
        "is_encoder_decoder": (True,),
        "pad_token_id": (0,),
        "relative_attention_max_distance": (128,),
        "relative_attention_num_buckets": (BUCKETS,),
    }
    # dense_act_fn and is_gated_act repeat feed_forward_proj.
    HARMLESS: ClassVar = (
        *family.NOTES,
        *("classifier_dropout", "dense_act_fn", "is_gated_act", "n_positions"),
    )
    MODEL: ClassVar = Transformer

    vocab_size: Annotated[int, msgspec.Meta(ge=4, le=family.MOST)]
    num_layers: Size
    d_model: Size
    d_kv: Size
    d_ff: Size
    num_heads: Size
    num_decoder_layers: Size | None = None
    dropout_rate: Share = 0.1
    layer_norm_epsilon: Epsilon = 1e-6
    feed_forward_proj: Literal[tuple(FEED_FORWARDS)] = "relu"
    tie_word_embeddings: bool = True
    # Whether logits are scaled by d_model^-0.5. None: if the tables are tied.
    scale_decoder_outputs: bool | None = None

    def __post_init__(self):
        if self.scale_decoder_outputs is None:
            self.scale_decoder_outputs = self.tie_word_embeddings
        self.num_decoder_layers = self.num_decoder_layers or self.num_layers


class Tokenizer(Schema):
    """Keys of tokenizer_config.json that we read."""

    extra_ids: Natural = 100


def of_weights(config: Config, names: Collection[str]) -> Config:
    """Correct tie_word_embeddings, which transformers 5 always writes as true, by the weights."""
    return msgspec.structs.replace(config, tie_word_embeddings=PROJECTION not in names)


def hyperparameters(config: Config) -> Hyperparameters:
    return Hyperparameters(
        vocabulary_size=config.vocab_size + 1,
        num_layers=config.num_layers,
        num_decoder_layers=config.num_decoder_layers,
        d_model=config.d_model,
        d_ff=config.d_ff,
        num_heads=config.num_heads,
        d_k=config.d_kv,
        d_v=config.d_kv,
        dropout=config.dropout_rate,
        label_smoothing=0.0,
        norm="pre_rms",
        activation=FEED_FORWARDS[config.feed_forward_proj][0],
        positions="relative",
        attention="dot_product",
        norm_epsilon=config.layer_norm_epsilon,
        tie_embeddings="three_way" if config.tie_word_embeddings else "inputs",
        # It scales the logits, we the embeddings; with one table both are the same.
        scaled_embeddings=config.tie_word_embeddings and config.scale_decoder_outputs,
        output_bias=True,
    )


def vocabulary(files: SettingsFiles, config: Config) -> Vocabulary:
    """Return the pieces of spiece.model by our ids, sentinels, and names for unused rows."""
    remedy = "Save the slow tokenizer into it, or take the file from where the model is from."
    model = read_model(required_file(files.path, PIECES, remedy), family.WHOLE)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(number) for number in range(processor.vocab_size())]
    count = files.read(Tokenizer, "tokenizer_config.json", ANOTHER).extra_ids
    missing = config.vocab_size - len(pieces) - count
    if missing < 0:
        least = f"at least {len(pieces) + count:,}, the pieces of {PIECES} and {count} sentinels"
        path = files.path / "config.json"
        refuse("vocab_size", path, least, config.vocab_size, family.OWN_CONFIG)
    pieces += [f"<extra_id_{number}>" for number in reversed(range(count))]
    pieces += [f"<unused {number}>" for number in range(missing)]
    # The order of `rows`.
    return Vocabulary(in_order(model, [*pieces[4:], pieces[3]], unknown="")[0])


def table(config: Config) -> Iterator[Weight]:
    d = config.d_model
    heads = config.num_heads * config.d_kv
    pieces = (config.vocab_size, d)

    def scaled_rows(array):
        factor = d**-0.5 if config.scale_decoder_outputs else 1.0
        return array[rows(config.vocab_size)] * factor

    is_tied = config.tie_word_embeddings
    embeddings = scaled_rows if is_tied else lambda array: array[rows(config.vocab_size)]
    yield Weight("embedding/table", "shared.weight", pieces, embeddings)
    # Our BOS, which T5 lacks, must not be produced.
    bias = f"{'embedding' if is_tied else 'projection'}/output_bias"
    size = config.vocab_size + 1
    yield Weight(bias, None, (), lambda _: NEVER * np.eye(1, size, BOS, np.float32)[0])
    if not is_tied:
        yield Weight("projection/table", PROJECTION, pieces, scaled_rows)
    for stack, sublayers in SUBLAYERS.items():
        yield Weight(f"{stack}/final_norm/gamma", f"{stack}.final_layer_norm.weight", (d,))
        biases = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for number in range(getattr(config, LAYERS[f"{stack}.block"])):
            ours = f"{stack}/layer_{number}"
            theirs = f"{stack}.block.{number}.layer"
            for place, (attention, name) in sublayers.items():
                for letter, kernel in ATTENTION.items():
                    matrix = f"{theirs}.{place}.{attention}.{letter}.weight"
                    shape = (d, heads) if letter == "o" else (heads, d)
                    yield Weight(f"{ours}/{name}/{kernel}", matrix, shape, np.transpose)
                gamma = f"{theirs}.{place}.layer_norm.weight"
                yield Weight(f"{ours}/{name}_norm/norm/gamma", gamma, (d,))
            places = f"{ours}/self_attention/heads/positions/bias"
            yield Weight(places, biases, (BUCKETS, config.num_heads), np.transpose)
            yield from _feed_forward(ours, f"{theirs}.{len(sublayers)}", config)


def _feed_forward(ours, theirs, config):
    activation, maps = FEED_FORWARDS[config.feed_forward_proj]
    inner_shape = (config.d_ff, config.d_model)
    for name, letters in maps.items():
        shape = inner_shape[::-1] if name == "outer" else inner_shape
        matrix = f"{theirs}.DenseReluDense.{letters}.weight"
        yield Weight(f"{ours}/feed_forward/{name}/kernel", matrix, shape, np.transpose)
        if activation == "relu":
            bias = f"{ours}/feed_forward/{name}/bias"
            yield Weight(bias, None, (), lambda _, size=shape[0]: np.zeros(size, np.float32))
    gamma = f"{theirs}.layer_norm.weight"
    yield Weight(f"{ours}/feed_forward_norm/norm/gamma", gamma, (config.d_model,))


def rows(vocabulary_size: int) -> np.ndarray:
    """Return T5's id, a row of its table, for each of our ids."""
    return np.concatenate([SPECIAL, np.arange(4, vocabulary_size), [3]])
