"""What a BERT's folder in Hugging Face's layout says of text: its word pieces, in vocab.txt or
tokenizer.json (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding"), and how sentence-transformers makes a vector of a text (Reimers and
Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks").
"""

from typing import Any, ClassVar, Literal

import msgspec

from keras_transformer.imports.family import ANOTHER, MOST, Size, pieces_by_id
from keras_transformer.imports.folder_files import SettingsFiles
from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, quote, read_json, read_text, refuse
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
        added = (str(one.get("content")) for one in tokenizer.added_tokens)
        files.unused[TOKENIZER] += [f"added_tokens.{one}" for one in added if one not in numbers]
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


MODULES = "modules.json"
PROMPTS = "config_sentence_transformers.json"
POOLING = "1_Pooling"
# What settings begin with that say how states become one vector.
MODE = "pooling_mode_"
MEAN = (["mean"], ["mean_tokens"])
KINDS = ("Transformer", "Pooling", "Normalize")


class Module(Schema):
    """One step from a text to its vector."""

    HARMLESS: ClassVar = ("idx", "kwargs", "name")

    type: str
    path: str = ""


class PoolingSettings(Schema):
    """The config.json of a pooling."""

    HARMLESS: ClassVar = ("embedding_dimension", "include_prompt", "word_embedding_dimension")

    pooling_mode: str | None = None
    pooling_mode_cls_token: bool = False
    pooling_mode_mean_tokens: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_sqrt_len_tokens: bool = False
    pooling_mode_weightedmean_tokens: bool = False
    pooling_mode_lasttoken: bool = False


class Sentences(Schema):
    """What sentence_bert_config.json may say."""

    FIXED: ClassVar = {"do_lower_case": (False,)}

    max_seq_length: Size = MOST


class Prompts(Schema):
    """What config_sentence_transformers.json may say."""

    HARMLESS: ClassVar = ("__version__", "model_type", "similarity_fn_name")

    default_prompt_name: str | None = None
    prompts: dict[str, str] | None = None


def for_vectors(files: SettingsFiles, config: Any) -> Any:
    """A BERT's config with no more positions than texts have tokens in sentence-transformers.
    Vectors that are not, as ours, the mean of the text's states by its length, are refused.
    """
    path = files.path / MODULES
    _refuse_another_pooling(files, _pooling_of(files, path) if path.exists() else POOLING)
    asked = files.read(Prompts, PROMPTS, ANOTHER)
    name = asked.default_prompt_name
    if prompt := (asked.prompts or {}).get(name):
        remedy = f"Make it null, and write {prompt!r} before each text."
        wanted = "null, for our vectors are of the text alone"
        refuse("default_prompt_name", files.path / PROMPTS, wanted, name, remedy)
    said = files.read(Sentences, "sentence_bert_config.json", ANOTHER)
    longest = min(said.max_seq_length, config.max_position_embeddings)
    return msgspec.structs.replace(config, max_position_embeddings=longest)


def _pooling_of(files, path):
    """The folder of the pooling that modules.json names."""
    said = read_json(path, ANOTHER)
    if not isinstance(said, list) or not all(isinstance(module, dict) for module in said):
        raise ValueError(
            f"{path} is damaged: it must hold a list of objects. Received: {quote(said)}. {ANOTHER}"
        )
    modules = [files.of(Module, module, MODULES, ANOTHER) for module in said]
    kinds = [module.type.rpartition(".")[2] for module in modules]
    # Ours have the length 1 in any case.
    if (*kinds, KINDS[-1])[:3] != KINDS or len(kinds) > len(KINDS):
        raise ValueError(
            f"{path} must have the modules {', '.join(KINDS)}, as our vectors are made. Received: "
            f"{', '.join(map(quote, kinds)) or 'none'}. {ANOTHER}"
        )
    if modules[0].path:
        refuse("path", f"the first module of {path}", '""', modules[0].path, ANOTHER)
    if not (files.path / modules[1].path).resolve().is_relative_to(files.path.resolve()):
        refuse("path", f"the second module of {path}", "in it", modules[1].path, ANOTHER)
    return modules[1].path


def _refuse_another_pooling(files, pooling):
    name = f"{pooling}/config.json"
    path = files.path / name
    found = files.read(PoolingSettings, name, ANOTHER)
    # Newer versions write "pooling_mode": "cls", older ones "pooling_mode_cls_token": true.
    fields = msgspec.structs.asdict(found)
    modes = [key.removeprefix(MODE) for key, is_used in fields.items() if is_used is True]
    if found.pooling_mode is not None:
        modes = [found.pooling_mode]
    if modes and modes not in MEAN:
        raise ValueError(
            f"the pooling of {path} must be mean, as that of our vectors. Received: "
            f"{', '.join(map(quote, modes))}. Import another model, or delete {pooling} for "
            "vectors that are the mean all the same."
        )
