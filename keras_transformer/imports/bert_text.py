"""What a BERT's folder in Hugging Face's layout says of text: its word pieces, in vocab.txt or
tokenizer.json (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding").
"""

from collections.abc import Collection
from typing import Any, ClassVar, Literal

from keras_transformer.imports.family import ANOTHER, pieces_by_id
from keras_transformer.imports.folder_files import SettingsFiles
from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, read_text
from pipelines.vocabularies.word_pieces import LONGEST_WORD, SUFFIX, UNKNOWN, WordPieces, fault

VOCABULARY = "vocab.txt"
TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
AGAIN = "Save the tokenizer again."
# The classes that take everything from tokenizer.json instead.
OF_ANY_MODEL = ("PreTrainedTokenizerFast", "TokenizersBackend")
# Those that cut words into pieces; BertJapaneseTokenizer, say, has rules of words of its own.
CLASSES = (
    *("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast"),
    *("ElectraTokenizer", "ElectraTokenizerFast", *OF_ANY_MODEL),
)


class TokenizerConfig(Schema):
    """What tokenizer_config.json may say."""

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
    # null: as lower_case.
    strip_accents: bool | None = None


class Tokenizer(Schema):
    """What tokenizer.json may say. Padding and the length of texts are ours to choose."""

    HARMLESS: ClassVar = ("decoder", "padding", "truncation", "version")

    added_tokens: tuple[dict[str, Any], ...] = ()
    model: dict[str, Any] | None = None
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None

    def others(self, known: Collection[str]) -> list[str]:
        """The pieces that are added to those that are known, as settings that are not used."""
        added = (str(one.get("content")) for one in self.added_tokens)
        return [f"added_tokens.{one}" for one in added if one not in known]


class Model(Schema):
    """The model in tokenizer.json."""

    FIXED: ClassVar = {
        "continuing_subword_prefix": (SUFFIX,),
        "max_input_chars_per_word": (LONGEST_WORD,),
        "unk_token": (UNKNOWN,),
    }

    type: Literal["WordPiece"]
    vocab: dict[str, int]


class Normalizer(Schema):
    """The normalizer in tokenizer.json."""

    FIXED: ClassVar = {"clean_text": (True,), "handle_chinese_chars": (True,)}

    type: Literal["BertNormalizer"] = "BertNormalizer"
    lowercase: bool = True
    strip_accents: bool | None = None


class PreTokenizer(Schema):
    """What parts words in tokenizer.json."""

    type: Literal["BertPreTokenizer"] = "BertPreTokenizer"


class PostProcessor(Schema):
    """What puts marks around a text in tokenizer.json."""

    HARMLESS: ClassVar = ("cls", "pair", "sep", "single", "special_tokens")

    type: Literal["TemplateProcessing", "BertProcessing"] = "TemplateProcessing"


OF_TEXT = {"normalizer": Normalizer, "pre_tokenizer": PreTokenizer, "post_processor": PostProcessor}


def load_vocabulary(files: SettingsFiles, most_pieces: int | None = None) -> WordPieces:
    """Read the vocabulary of a folder, of at most as many pieces as the model's table has rows."""
    config = files.read(TokenizerConfig, SETTINGS, AGAIN)
    tokenizer = files.read(Tokenizer, TOKENIZER, AGAIN, MOST_BYTES_OF_LISTS)
    path = files.path / VOCABULARY
    pieces = _of_lines(path) if path.exists() else []
    if tokenizer.model is not None:
        numbers = files.of(Model, tokenizer.model, TOKENIZER, ANOTHER, "model").vocab
        of_ids = pieces_by_id(numbers, files.path / TOKENIZER, AGAIN)
        files.unused[TOKENIZER] += tokenizer.others(numbers)
        if pieces and pieces != of_ids:
            raise ValueError(
                f"{path} and {files.path / TOKENIZER} must have the same pieces. Received: others. "
                "Delete the one that the model was not trained with."
            )
        path = path if pieces else files.path / TOKENIZER
        pieces = of_ids
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
    lower_case, strip_accents = _cutting(files, config, tokenizer)
    try:
        return WordPieces(pieces, lower_case, strip_accents)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _cutting(files, config, tokenizer):
    """Whether a text is put into lower case, and whether its accents are removed. As in
    transformers it stands in tokenizer_config.json, or in tokenizer.json for a tokenizer of no
    class of its own.
    """
    if config.tokenizer_class not in OF_ANY_MODEL:
        return config.do_lower_case, config.strip_accents
    parts = {
        name: files.of(schema, getattr(tokenizer, name) or {}, TOKENIZER, ANOTHER, name)
        for name, schema in OF_TEXT.items()
    }
    return parts["normalizer"].lowercase, parts["normalizer"].strip_accents


def _of_lines(path):
    """The lines of a file. Only a line feed parts them: a vocabulary may have pieces such as
    U+2028, at which `splitlines` would part too.
    """
    lines = read_text(path, MOST_BYTES_OF_LISTS).removesuffix("\n").split("\n")
    pieces = [line.removesuffix("\r") for line in lines] if lines[0].endswith("\r") else lines
    if found := fault(pieces):
        number, reason = found
        raise ValueError(f"line {number + 1} of {path} {reason}. {AGAIN}")
    return pieces
