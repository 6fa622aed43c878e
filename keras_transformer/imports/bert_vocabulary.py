"""The word pieces of a BERT's folder in Hugging Face's layout: its vocab.txt, or its
tokenizer.json (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding").
"""

import json
import os
import pathlib

from pipelines.word_pieces import WordPieces

# Those of BERT's class in transformers.
DEFAULTS = {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}
# The classes that take everything from tokenizer.json instead.
OF_ANY_MODEL = ("PreTrainedTokenizerFast", "TokenizersBackend")


def load(folder: str | os.PathLike) -> WordPieces:
    """Read the vocabulary of a folder.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is damaged, is not of word pieces, or cuts text as we cannot.
    """
    folder = pathlib.Path(folder)
    tokenizer = _json(folder / "tokenizer.json")
    settings = _settings(folder, tokenizer)
    path = folder / "vocab.txt"
    if path.exists():
        return WordPieces(_lines(path), **settings)
    if not tokenizer:
        raise FileNotFoundError(
            f"{folder} has no vocabulary: neither vocab.txt nor tokenizer.json. Save its tokenizer "
            "there."
        )
    model = tokenizer.get("model", {})
    if model.get("type") != "WordPiece":
        raise ValueError(
            f"the tokenizer of {folder} must be of the type WordPiece. Received: "
            f"{model.get('type')}. Import a BERT."
        )
    numbers = model["vocab"]
    return WordPieces(sorted(numbers, key=numbers.get), **settings)


def _settings(folder, tokenizer):
    """What is done to a text before it is cut. As in transformers it stands in
    tokenizer_config.json, or in tokenizer.json for a tokenizer of no class of its own.
    """
    config = _json(folder / "tokenizer_config.json")
    theirs = {**DEFAULTS, **config}
    if config.get("tokenizer_class") in OF_ANY_MODEL:
        normalizer = tokenizer.get("normalizer") or {}
        theirs = {
            "do_lower_case": normalizer.get("lowercase", True),
            "strip_accents": normalizer.get("strip_accents"),
            "tokenize_chinese_chars": normalizer.get("handle_chinese_chars", True),
        }
    if not theirs["tokenize_chinese_chars"]:
        raise ValueError(
            f"the tokenizer of {folder} must have tokenize_chinese_chars=true in "
            "tokenizer_config.json (handle_chinese_chars in tokenizer.json), for we make a word of "
            "each Chinese character. Received: false. Import another model."
        )
    # null: as lower_case.
    return {"lower_case": theirs["do_lower_case"], "strip_accents": theirs["strip_accents"]}


def _lines(path):
    """The lines of a file. Only a line feed parts them: a vocabulary may have pieces such as
    U+2028, at which `splitlines` would part too.
    """
    # Of bytes, for `read_text` would take a lone carriage return for a line feed.
    text = path.read_bytes().decode("utf-8")
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if lines[0].endswith("\r") else lines


def _json(path):
    """What a file of JSON holds; {} if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}). Save the tokenizer again.") from error
