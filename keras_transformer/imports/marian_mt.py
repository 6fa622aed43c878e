"""MarianMT, Hugging Face's form of Marian's translators, as a `Transformer` (Junczys-Dowmunt et al.
2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann and Thottingal 2020, "OPUS-MT:
Building open translation services for the World").

Hugging Face's model differs a little from Marian's: positions have the paper's rates, and the
epsilon of norms is 1e-5. We compute what Hugging Face computes; `marian` loads the original.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from keras_transformer.imports import seq2seq, seq2seq_files
from keras_transformer.imports.family import ANOTHER, WHOLE, Size, Weight, tables
from keras_transformer.imports.folder_files import required_file
from keras_transformer.imports.seq2seq_files import read_pieces
from keras_transformer.models import Hyperparameters
from pipelines.json_files import Schema, refuse
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.other_order import read_in_order

MODEL_TYPE = "marian"
LAYERS = seq2seq.LAYERS
SPM = ("source.spm", "target.spm")
SPECIAL = {"<unk>": "UNKNOWN", "</s>": "eos_token_id", "<pad>": "pad_token_id"}
PREFIX = seq2seq.PREFIX
TIES = seq2seq.TIES
finish = seq2seq_files.finish


class Config(seq2seq.Config, kw_only=True):
    """Keys of a MarianMT's config.json."""

    FIXED: ClassVar = {
        **seq2seq.Config.FIXED,
        "add_bias_logits": (False,),
        "add_final_layer_norm": (False,),
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "static_position_embeddings": (True,),
    }
    UNKNOWN: ClassVar = 1

    activation_function: Literal[tuple(seq2seq.ACTIVATIONS)] = "gelu"
    decoder_vocab_size: Size | None = None
    share_encoder_decoder_embeddings: bool = True

    def sizes(self):
        return self.vocab_size, self.decoder_vocab_size or self.vocab_size

    @property
    def ties(self) -> str:
        """Our `tie_embeddings`: which matrices share one table."""
        if not self.tie_word_embeddings:
            return "none"
        return "three_way" if self.share_encoder_decoder_embeddings else "decoder"


class Tokenizer(Schema):
    """Keys of tokenizer_config.json that decide how text is cut."""

    separate_vocabs: bool = False


def hyperparameters(config: Config) -> Hyperparameters:
    source, target = config.sizes()
    if config.share_encoder_decoder_embeddings and source != target:
        refuse("decoder_vocab_size", "config.json", f"vocab_size, {source}", target, WHOLE)
    return seq2seq.hyperparameters(
        config, norm="post", positions="marian_mt", tie_embeddings=config.ties
    )


def table(config: Config) -> Iterator[Weight]:
    source, target = ((size, config.d_model) for size in config.sizes())

    def rows(array):
        return seq2seq.rows(config, array)

    of_target = "shared" if config.ties == "three_way" else "decoder.embed_tokens"
    yield from tables(
        config.ties,
        (f"{of_target}.weight", target, rows),
        ("encoder.embed_tokens.weight", source, rows),
        ("lm_head.weight", target, rows),
        ("final_logits_bias", (1, target[0]), lambda array: seq2seq.bias(config, array[0])),
    )
    yield from seq2seq.layers(config)


def decoding(folder: Any, languages: dict[str, str | None]) -> dict[str, Any]:
    """Return how a `PretrainedFolder` decodes, as arguments of `DecodingOptions`."""
    forced = seq2seq_files.generation(folder).forced_bos_token_id
    if forced is not None:
        refuse("forced_bos_token_id", seq2seq_files.place(folder), "null", forced, ANOTHER)
    return {**seq2seq_files.decoding(folder), **languages}


def vocabulary(folder: Any) -> SeparateVocabularies:
    """Return the vocabularies of source and target of a `PretrainedFolder`, of one size."""
    config = folder.config
    tokenizer = seq2seq_files.read_tokenizer(folder, Tokenizer)
    names = ["vocab.json", "target_vocab.json" if tokenizer.separate_vocabs else "vocab.json"]
    sides = []
    for name, spm, size in zip(names, SPM, config.sizes(), strict=True):
        pieces = read_pieces(folder, name, size)
        special = {piece: getattr(config, key) for piece, key in SPECIAL.items()}
        seq2seq_files.check_special(pieces, special, folder.path / name)
        ordinary = seq2seq_files.pieces_in_order(config, pieces, size)
        path = required_file(folder.path, spm, WHOLE)
        # Hugging Face's `skip_special_tokens` removes <unk>.
        sides.append(read_in_order(path, ordinary, WHOLE, folder.files.unused, unknown=""))
    return SeparateVocabularies(*sides)
