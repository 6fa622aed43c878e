"""M2M100 and NLLB-200 as a `Transformer` (Fan et al. 2021, "Beyond English-Centric Multilingual
Machine Translation"; NLLB Team 2022, "No Language Left Behind: Scaling Human-Centered Machine
Translation").

One SentencePiece model cuts all languages. The ids of its pieces are those of vocab.json in M2M100,
and those of fairseq in NLLB-200: <s>, <pad>, </s>, <unk>, then the order of the SentencePiece
model. The language labels follow.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import sentencepiece

from keras_transformer.imports import family, seq2seq, seq2seq_files
from keras_transformer.imports.family import WHOLE, Natural, Weight, norm, pieces_by_id
from keras_transformer.imports.folder_files import required_file
from keras_transformer.imports.seq2seq_files import TOKENIZER
from keras_transformer.models import Hyperparameters
from pipelines import json_files
from pipelines.json_files import Schema, refuse
from pipelines.vocabularies.other_order import read_in_order, read_model
from pipelines.vocabularies.vocabulary import Vocabulary

MODEL_TYPE = "m2m_100"
LAYERS = seq2seq.LAYERS
SPM = "sentencepiece.bpe.model"
SPECIAL_TOKENS = "special_tokens_map.json"
ADDED = "added_tokens.json"
# What fairseq has in place of the first three pieces of a SentencePiece model.
OF_FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
LABEL = re.compile(r"__\w+__|[a-z]{3}_[A-Z][a-z]{3}")
PREFIX = seq2seq.PREFIX
TIES = seq2seq.TIES
finish = seq2seq_files.finish


class Config(seq2seq.Config, kw_only=True):
    """Keys of the config.json of an M2M100 or NLLB-200."""

    FIXED: ClassVar = {**seq2seq.Config.FIXED, "tie_word_embeddings": (True,)}
    UNKNOWN: ClassVar = 3

    pad_token_id: Natural = 1
    eos_token_id: Natural = 2
    decoder_start_token_id: Natural = 2
    scale_embedding: bool = True


class Tokenizer(Schema):
    """Keys of tokenizer_config.json and special_tokens_map.json that decide how text is cut."""

    FIXED: ClassVar = {"legacy_behaviour": (False, None)}

    src_lang: str | None = None
    tgt_lang: str | None = None
    added_tokens_decoder: dict[str, dict[str, Any]] | None = None
    additional_special_tokens: list[str] | None = None
    extra_special_tokens: list[str] | None = None


def hyperparameters(config: Config) -> Hyperparameters:
    return seq2seq.hyperparameters(
        config, norm="pre", positions="tensor2tensor", first_position=config.pad_token_id + 1
    )


def table(config: Config) -> Iterator[Weight]:
    """Yield the weights of a model of config.json. It has no output bias; ours bars BOS."""
    shape = (config.vocab_size, config.d_model)
    no_bias = np.zeros(config.vocab_size, np.float32)
    rows = functools.partial(seq2seq.rows, config)
    yield Weight("embedding/table", "shared.weight", shape, rows)
    yield Weight("embedding/output_bias", None, (), lambda _: seq2seq.bias(config, no_bias))
    yield from seq2seq.layers(config)
    for stack in family.ATTENTIONS:
        yield from norm(f"{stack}/final_norm", f"{stack}.layer_norm", config.d_model)


def vocabulary(folder: Any) -> Vocabulary:
    """Return the vocabulary of a `PretrainedFolder`, with its language labels."""
    config = folder.config
    pieces = _pieces(folder)
    special = {"<unk>": config.UNKNOWN, "</s>": config.eos_token_id}
    seq2seq_files.check_special(pieces, special, folder.path)
    ordinary = seq2seq_files.pieces_in_order(config, pieces, config.vocab_size)
    labels = {piece for piece in ordinary if LABEL.fullmatch(piece)}
    if not labels:
        raise ValueError(
            f"{folder.path / TOKENIZER} must name the labels of languages, such as __de__ or "
            f"deu_Latn, by additional_special_tokens. Received: none. {WHOLE}"
        )
    path = required_file(folder.path, SPM, WHOLE)
    unused = folder.files.unused
    return read_in_order(path, ordinary, WHOLE, unused, labels=labels, unknown="")


@functools.lru_cache(maxsize=1)
def _pieces(folder):
    """Return all pieces by their ids, including the labels."""
    size = folder.config.vocab_size
    if (folder.path / "vocab.json").exists():
        pieces = seq2seq_files.read_pieces(folder, "vocab.json", size)
    else:
        model = read_model(required_file(folder.path, SPM, WHOLE), WHOLE)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        numbers = range(len(OF_FAIRSEQ) - 1, processor.vocab_size())
        pieces = [*OF_FAIRSEQ, *map(processor.id_to_piece, numbers)]
    ids = {piece: number for number, piece in enumerate(pieces)} | _added(folder, len(pieces))
    count = max(ids.values()) + 1
    if count > size:
        least = f"at least the {count:,} pieces of the tokenizer"
        refuse("vocab_size", folder.path / "config.json", least, size, WHOLE)
    gaps = sorted(set(range(count)) - set(ids.values()))
    ids |= {f"<unused {number}>": number for number in gaps}
    return pieces_by_id(ids, folder.path / TOKENIZER, WHOLE)


def _added(folder, count):
    """Return the ids of the pieces that follow the `count` pieces of text."""
    tokenizer = seq2seq_files.read_tokenizer(folder, Tokenizer)
    if tokenizer.added_tokens_decoder:
        return {
            # int() refuses thousands of digits; 20 already exceed any table.
            str(token.get("content")): int(number[:20])
            for number, token in tokenizer.added_tokens_decoder.items()
            if number.isdecimal() and int(number[:20]) >= count
        }
    if (folder.path / ADDED).exists():
        ids = json_files.read_object(folder.path / ADDED, WHOLE)
        folder.files.unused[ADDED] = []
        return {piece: number for piece, number in ids.items() if type(number) is int}
    names = tokenizer.additional_special_tokens or tokenizer.extra_special_tokens
    if not names:
        special = seq2seq_files.read_tokenizer(folder, Tokenizer, SPECIAL_TOKENS)
        names = special.additional_special_tokens
    return {name: count + number for number, name in enumerate(names or ())}


def decoding(folder: Any, languages: dict[str, str | None]) -> dict[str, Any]:
    """Return how a `PretrainedFolder` decodes, as arguments of `DecodingOptions`. `languages` take
    precedence over the folder's.
    """
    tokenizer = seq2seq_files.read_tokenizer(folder, Tokenizer)
    pieces = _pieces(folder)
    number = seq2seq_files.generation(folder).forced_bos_token_id
    forced = pieces[number] if number is not None and number < len(pieces) else None
    english = next((label for label in ("__en__", "eng_Latn") if label in pieces), "en")
    source = languages.get("source_language") or tokenizer.src_lang or english
    target = languages.get("target_language") or tokenizer.tgt_lang or forced
    if target is None:
        labels = ", ".join(sorted(piece.strip("_") for piece in pieces if LABEL.fullmatch(piece)))
        raise ValueError(
            f"{folder.path} does not say into which language. Pass --to_language: {labels}."
        )
    pair = {"source_language": source.strip("_"), "target_language": target.strip("_")}
    return {**seq2seq_files.decoding(folder), **pair}
