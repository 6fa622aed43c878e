"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners") as a
`LanguageModel`: with its own ids, or as a run with ours, where PAD, UNK, BOS and EOS come first.
<|endoftext|>, which separates its texts, becomes both BOS and EOS.
"""

import collections
import dataclasses
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from keras_transformer.imports import bert_text, family
from keras_transformer.imports.bert_text import TOKENIZER
from keras_transformer.imports.family import ANOTHER, WHOLE, Epsilon, Share, Size, Weight, norm
from keras_transformer.imports.folder_files import SettingsFiles, listed
from keras_transformer.models import Hyperparameters, LanguageModel
from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, read_object, read_text
from pipelines.special_ids import BOS, EOS, PAD, UNK
from pipelines.vocabularies.other_order import SPECIAL, byte_pair_model
from pipelines.vocabularies.tokenizers import LETTERS
from pipelines.vocabularies.vocabulary import Vocabulary

MODEL_TYPE = "gpt2"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
LAYERS = {"h": "n_layer"}
PREFIX = "transformer."
TIES = {"wte.weight": "lm_head.weight"}
# Parts of its attn.c_attn, one map to queries, keys and values.
PARTS = ("query", "key", "value")
VOCABULARY = "vocab.json"
MERGES = "merges.txt"
END = "<|endoftext|>"
# Output bias of pieces that must not be produced. GPT-2's logits are around -100.
NEVER = -1e4


class Config(family.Config, kw_only=True):
    """Keys of a GPT-2's config.json."""

    FIXED: ClassVar = {
        **family.Config.FIXED,
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
        "tie_word_embeddings": (True,),
    }
    HARMLESS: ClassVar = (
        *family.NOTES,
        *("embd_pdrop", "n_ctx", "pad_token_id", "reorder_and_upcast_attn", "summary_activation"),
        *("summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"),
    )
    MODEL: ClassVar = LanguageModel

    vocab_size: Size
    n_layer: Size
    n_embd: Size
    n_head: Size
    n_positions: Size
    n_inner: Size | None = None
    activation_function: Literal[tuple(ACTIVATIONS)] = "gelu_new"
    resid_pdrop: Share = 0.1
    attn_pdrop: Share = 0.1
    layer_norm_epsilon: Epsilon = 1e-5

    def __post_init__(self):
        self.n_inner = self.n_inner or 4 * self.n_embd


def hyperparameters(config: Config) -> Hyperparameters:
    return Hyperparameters(
        vocabulary_size=config.vocab_size,
        num_layers=config.n_layer,
        d_model=config.n_embd,
        d_ff=config.n_inner,
        num_heads=config.n_head,
        dropout=config.resid_pdrop,
        attention_dropout=config.attn_pdrop,
        label_smoothing=0.0,
        norm="pre",
        activation=ACTIVATIONS[config.activation_function],
        positions="learned",
        max_positions=config.n_positions,
        attention_bias=True,
        norm_epsilon=config.layer_norm_epsilon,
        scaled_embeddings=False,
    )


def table(config: Config) -> Iterator[Weight]:
    """Yield the weights of a model of config.json, theirs without the prefix."""
    d = config.n_embd
    yield Weight("embedding/table", "wte.weight", (config.vocab_size, d))
    yield Weight("embedding/encoding/table", "wpe.weight", (config.n_positions, d))
    yield from norm("decoder/final_norm", "ln_f", d)
    maps = {
        "self_attention/output_{}": ("attn.c_proj", d, d),
        "feed_forward/inner/{}": ("mlp.c_fc", d, config.n_inner),
        "feed_forward/outer/{}": ("mlp.c_proj", config.n_inner, d),
    }
    for number in range(config.n_layer):
        ours = f"decoder/layer_{number}"
        theirs = f"h.{number}"
        for kind, name, shape in (("kernel", "weight", (d, 3 * d)), ("bias", "bias", (3 * d,))):
            all_three = f"{theirs}.attn.c_attn.{name}"
            for i, part in enumerate(PARTS):
                path = f"{ours}/self_attention/{part}_{kind}"
                yield Weight(path, all_three, shape, lambda array, i=i: np.split(array, 3, -1)[i])
        for path, (name, inputs, outputs) in maps.items():
            kernel = f"{ours}/{path.format('kernel')}"
            yield Weight(kernel, f"{theirs}.{name}.weight", (inputs, outputs))
            yield Weight(f"{ours}/{path.format('bias')}", f"{theirs}.{name}.bias", (outputs,))
        yield from norm(f"{ours}/self_attention_norm/norm", f"{theirs}.ln_1", d)
        yield from norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.ln_2", d)


class Pieces(NamedTuple):
    """GPT-2's pieces by their ids, and the pairs of pieces that are merged, in their order."""

    pieces: list[str]
    merges: list[tuple[str, str]]

    def vocabulary(self, rows: int) -> Vocabulary:
        """Return the vocabulary with our ids, for a table of so many rows."""
        ranks: dict[str, float] = dict.fromkeys(LETTERS, 0.0)
        for rank, pair in enumerate(self.merges, start=1):
            ranks.setdefault("".join(pair), -float(rank))
        ordinary = [piece for piece in self.pieces if piece != END]
        ordinary += [f"<unused {number}>" for number in range(rows - len(self.pieces))]
        return Vocabulary(byte_pair_model({piece: ranks.get(piece) for piece in ordinary}))


class Tokenizer(bert_text.Tokenizer):
    """Keys of tokenizer.json."""

    FIXED: ClassVar = {"normalizer": (None,)}


class PreTokenizer(Schema):
    """Keys of `pre_tokenizer` in tokenizer.json, which splits text into words."""

    FIXED: ClassVar = {"add_prefix_space": (False,), "use_regex": (True,)}
    HARMLESS: ClassVar = ("trim_offsets",)

    type: Literal["ByteLevel"]


class Model(Schema):
    """Keys of `model` in tokenizer.json."""

    FIXED: ClassVar = {"type": ("BPE",), "byte_fallback": (False,), "dropout": (None,)}

    vocab: dict[str, int]
    merges: list[str | list[str]]


def read_pieces(files: SettingsFiles, config: Config) -> Pieces:
    """Read vocab.json and merges.txt, or tokenizer.json."""
    path = files.path / VOCABULARY
    if path.exists() and (files.path / MERGES).exists():
        ids = read_object(path, WHOLE, MOST_BYTES_OF_LISTS)
        files.unused.setdefault(VOCABULARY, [])
        lines = read_text(files.path / MERGES, MOST_BYTES_OF_LISTS).split("\n")
        pairs = [line for line in lines if line and not line.startswith("#version")]
    elif (files.path / TOKENIZER).exists():
        path = files.path / TOKENIZER
        tokenizer = files.read(Tokenizer, TOKENIZER, WHOLE, MOST_BYTES_OF_LISTS)
        model = files.parse(Model, tokenizer.model or {}, TOKENIZER, ANOTHER, "model")
        words = tokenizer.pre_tokenizer or {}
        files.parse(PreTokenizer, words, TOKENIZER, ANOTHER, "pre_tokenizer")
        files.unused[TOKENIZER] += tokenizer.unused_tokens(model.vocab)
        ids = model.vocab
        pairs = model.merges
    else:
        raise FileNotFoundError(
            f"{files.path} has no {VOCABULARY} and {MERGES}, and no {TOKENIZER}. It has "
            f"{listed(files.path)}. {WHOLE}"
        )
    pieces = family.pieces_by_id(ids, path, WHOLE)
    merges = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in pairs]
    missing = {END, *LETTERS} - ids.keys()
    unknown = [pair for pair in merges if len(pair) != 2 or "".join(pair) not in ids]
    if missing or unknown or len(ids) > config.vocab_size:
        raise ValueError(
            f"{path} must have at most {config.vocab_size:,} pieces, the `vocab_size`, with {END}, "
            f"all bytes and all merged pairs among them. Received: {len(ids):,} pieces, "
            f"{len(missing)} of these missing, {len(unknown):,} other pairs. {WHOLE}"
        )
    return Pieces(pieces, merges)


def of_run(
    config: Config, arrays: Mapping[str, np.ndarray], end: int
) -> tuple[Hyperparameters, Mapping[str, np.ndarray]]:
    """Return a run's hyperparameters and weights, with our ids, from those with GPT-2's ids."""
    theirs = arrays["embedding/table"]
    table = np.zeros((len(theirs) - 1 + len(SPECIAL), theirs.shape[1]), theirs.dtype)
    table[[BOS, EOS]] = theirs[end]
    table[len(SPECIAL) :] = np.delete(theirs, end, axis=0)
    bias = np.zeros(len(table), table.dtype)
    bias[[PAD, UNK, BOS]] = NEVER
    sizes = dataclasses.replace(
        hyperparameters(config), vocabulary_size=len(table), output_bias=True
    )
    ours = {"embedding/table": table, "embedding/output_bias": bias}
    return sizes, collections.ChainMap(ours, arrays)
