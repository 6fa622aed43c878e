"""Load the word pieces of a BERT in Hugging Face's layout and how it cuts text, from vocab.txt and
tokenizer.json (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding").
"""

from collections.abc import Collection
from typing import Any, ClassVar, Literal

from keras_transformer.imports.family import ANOTHER, WHOLE, pieces_by_id
from keras_transformer.imports.folder_files import SettingsFiles
from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, read_text
from pipelines.vocabularies.word_pieces import LONGEST_WORD, SUFFIX, UNKNOWN, WordPieces, fault

VOCABULARY = "vocab.txt"
TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
# Classes without settings of their own: tokenizer.json has all.
GENERIC_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
# Classes whose rules we know; BertJapaneseTokenizer, for example, has others for words.
CLASSES = (
    *("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast"),
    *("ElectraTokenizer", "ElectraTokenizerFast", *GENERIC_CLASSES),
)


class TokenizerConfig(Schema):
    """Keys of tokenizer_config.json."""

    FIXED: ClassVar = {
        "do_basic_tokenize": (True,),
        "never_split": (None, []),
        "tokenize_chinese_chars": (True,),
    }
    HARMLESS: ClassVar = (
        *("additional_special_tokens", "added_tokens_decoder", "backend", "clean_up_tokenization"),
        *("clean_up_tokenization_spaces", "cls_token", "extra_special_tokens", "is_local"),
        *("local_files_only", "mask_token", "model_max_length", "name_or_path", "pad_token"),
        *("padding_side", "sep_token", "special_tokens_map_file", "tokenizer_file", "unk_token"),
        *("model_input_names", "truncation_side", "tokenizers_version"),
    )

    tokenizer_class: Literal[CLASSES] | None = None
    do_lower_case: bool = True
    # None: as do_lower_case.
    strip_accents: bool | None = None


class Tokenizer(Schema):
    """Keys of tokenizer.json. We pad and truncate by rules of our own."""

    HARMLESS: ClassVar = ("decoder", "padding", "truncation", "version")

    added_tokens: tuple[dict[str, Any], ...] = ()
    model: dict[str, Any] | None = None
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None

    def unused_tokens(self, pieces: Collection[str]) -> list[str]:
        """Name the added tokens that are not among the pieces, as keys that are not used."""
        added = (str(token.get("content")) for token in self.added_tokens)
        return [f"added_tokens.{token}" for token in added if token not in pieces]


class Model(Schema):
    """Keys of `model` in tokenizer.json."""

    FIXED: ClassVar = {
        "continuing_subword_prefix": (SUFFIX,),
        "max_input_chars_per_word": (LONGEST_WORD,),
        "unk_token": (UNKNOWN,),
    }

    type: Literal["WordPiece"]
    vocab: dict[str, int]


class Normalizer(Schema):
    """Keys of `normalizer` in tokenizer.json."""

    FIXED: ClassVar = {"clean_text": (True,), "handle_chinese_chars": (True,)}

    type: Literal["BertNormalizer"] = "BertNormalizer"
    lowercase: bool = True
    strip_accents: bool | None = None


class PreTokenizer(Schema):
    """Keys of `pre_tokenizer` in tokenizer.json, which splits text into words."""

    type: Literal["BertPreTokenizer"] = "BertPreTokenizer"


class PostProcessor(Schema):
    """Keys of `post_processor` in tokenizer.json, which adds [CLS] and [SEP]."""

    HARMLESS: ClassVar = ("cls", "pair", "sep", "single", "special_tokens")

    type: Literal["TemplateProcessing", "BertProcessing"] = "TemplateProcessing"


PARTS = {"normalizer": Normalizer, "pre_tokenizer": PreTokenizer, "post_processor": PostProcessor}


def load_vocabulary(files: SettingsFiles, most_pieces: int | None = None) -> WordPieces:
    """Load a folder's vocabulary of at most `most_pieces`, the rows of the model's table."""
    config = files.read(TokenizerConfig, SETTINGS, WHOLE)
    tokenizer = files.read(Tokenizer, TOKENIZER, WHOLE, MOST_BYTES_OF_LISTS)
    path = files.path / VOCABULARY
    pieces = _read_lines(path) if path.exists() else []
    if tokenizer.model is not None:
        ids = files.parse(Model, tokenizer.model, TOKENIZER, ANOTHER, "model").vocab
        pieces_of_json = pieces_by_id(ids, files.path / TOKENIZER, WHOLE)
        files.unused[TOKENIZER] += tokenizer.unused_tokens(ids)
        if pieces and pieces != pieces_of_json:
            raise ValueError(
                f"{path} and {files.path / TOKENIZER} must have the same pieces. Received: "
                "different ones. Delete the one that the model was not trained with."
            )
        path = path if pieces else files.path / TOKENIZER
        pieces = pieces_of_json
    if not pieces:
        raise FileNotFoundError(
            f"{files.path} has no vocabulary: neither {VOCABULARY} nor {TOKENIZER}. Save its "
            "tokenizer there."
        )
    if most_pieces and len(pieces) > most_pieces:
        raise ValueError(
            f"{path} must have at most {most_pieces:,} pieces, the `vocab_size` of config.json. "
            f"Received: {len(pieces):,}. Take the vocabulary that was saved with the weights."
        )
    lower_case, strip_accents = _normalization(files, config, tokenizer)
    try:
        return WordPieces(pieces, lower_case, strip_accents)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _normalization(files, config, tokenizer):
    """Return whether text is lower-cased and whether accents are stripped. As in transformers,
    tokenizer_config.json decides, or tokenizer.json for a generic class.
    """
    if config.tokenizer_class not in GENERIC_CLASSES:
        return config.do_lower_case, config.strip_accents
    parts = {
        name: files.parse(schema, getattr(tokenizer, name) or {}, TOKENIZER, ANOTHER, name)
        for name, schema in PARTS.items()
    }
    return parts["normalizer"].lowercase, parts["normalizer"].strip_accents


def _read_lines(path):
    """Read a piece from each line. Only a line feed ends a line: `splitlines` would also split at
    pieces such as U+2028.
    """
    lines = read_text(path, MOST_BYTES_OF_LISTS).removesuffix("\n").split("\n")
    pieces = [line.removesuffix("\r") for line in lines] if lines[0].endswith("\r") else lines
    if line_and_reason := fault(pieces):
        number, reason = line_and_reason
        raise ValueError(f"line {number + 1} of {path} {reason}. {WHOLE}")
    return pieces
