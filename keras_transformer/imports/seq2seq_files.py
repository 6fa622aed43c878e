"""The files of Hugging Face's translators besides sizes and weights: pieces, and the decoding in
generation_config.json (Wolf et al. 2020, "Transformers: State-of-the-Art Natural Language
Processing").
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, NEVER, WHOLE, Factor, Natural, Size
from keras_transformer.imports.folder_files import required_file
from pipelines import json_files
from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, refuse
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies.other_order import SPECIAL

GENERATION = "generation_config.json"
TOKENIZER = "tokenizer_config.json"
# Keys of generation_config.json that must be null.
NULL = (
    *("begin_suppress_tokens", "constraints", "exponential_decay_length_penalty"),
    *("force_words_ids", "forced_decoder_ids", "guidance_scale", "min_new_tokens"),
    *("penalty_alpha", "sequence_bias", "suppress_tokens"),
)


class Generation(Schema):
    """Keys of generation_config.json, or of config.json in an older folder."""

    FIXED: ClassVar = {
        **dict.fromkeys(NULL, (None,)),
        "diversity_penalty": (0.0, 0, None),
        "do_sample": (False, None),
        "encoder_no_repeat_ngram_size": (0, None),
        "min_length": (0, None),
        "no_repeat_ngram_size": (0, None),
        "num_beam_groups": (1, None),
        "repetition_penalty": (1.0, 1, None),
    }
    HARMLESS: ClassVar = (
        *("_from_model_config", "bos_token_id", "forced_eos_token_id", "output_attentions"),
        *("output_hidden_states", "transformers_version", "use_cache"),
    )

    num_beams: Size | None = None
    length_penalty: Factor | None = None
    early_stopping: bool | Literal["never"] | None = None
    max_length: Size | None = None
    max_new_tokens: Size | None = None
    bad_words_ids: list[list[Natural]] | None = None
    forced_bos_token_id: Natural | None = None
    renormalize_logits: bool | None = None
    decoder_start_token_id: Natural | None = None
    eos_token_id: Natural | list[Natural] | None = None
    pad_token_id: Natural | None = None


def place(folder: Any) -> pathlib.Path:
    """Return the path of the file that says how a `PretrainedFolder` decodes."""
    path = folder.path / GENERATION
    return path if path.exists() else folder.path / "config.json"


def generation(folder: Any) -> Generation:
    """Read how a `PretrainedFolder` decodes."""
    path = place(folder)
    document = json_files.read_object(path, ANOTHER)
    settings, unknown = json_files.settings(Generation, document, path, ANOTHER)
    if path.name == GENERATION:
        folder.files.unused[GENERATION] = unknown
    for name in ("decoder_start_token_id", "eos_token_id", "pad_token_id"):
        expected = getattr(folder.config, name)
        if (value := getattr(settings, name)) not in (None, expected, [expected]):
            refuse(name, path, f"{expected}, as in config.json", value, WHOLE)
    return settings


def barred_ids(folder: Any, settings: Generation) -> list[int]:
    """Return our ids of `bad_words_ids`."""
    words = settings.bad_words_ids or []
    size = folder.config.sizes()[1]
    if any(len(word) != 1 or word[0] >= size for word in words):
        refuse("bad_words_ids", place(folder), f"lists of one id below {size}", words, ANOTHER)
    order = folder.config.order(size).tolist()
    return [number for number, row in enumerate(order) if [row] in words]


def decoding(folder: Any) -> dict[str, Any]:
    """Return how a `PretrainedFolder` decodes, as arguments of `DecodingOptions`."""
    settings = generation(folder)
    forms = {True: "until_full", False: "until_worse", "never": "leaving"}
    # Their max_length includes the start token, and max_new_tokens replaces it.
    longest = settings.max_length or folder.config.max_position_embeddings
    most = settings.max_new_tokens or max(longest - 1, 1)
    return {
        "beam_size": settings.num_beams or 1,
        "length_penalty": 1.0 if settings.length_penalty is None else settings.length_penalty,
        "length_penalty_form": "length",
        "beam_form": forms[settings.early_stopping or False],
        "max_length": str(most),
        "min_length": "1",
        # We never produce PAD and BOS anyway.
        "barred": [number for number in barred_ids(folder, settings) if number not in (PAD, BOS)],
    }


def finish(folder: Any, model: Any) -> None:
    """Exclude `bad_words_ids` from the softmax if `renormalize_logits` says so."""
    settings = generation(folder)
    if settings.renormalize_logits and settings.bad_words_ids:
        bias = model.projection.bias
        values = bias.numpy()
        values[barred_ids(folder, settings)] = NEVER
        bias.assign(values)


def read_tokenizer(folder: Any, schema: type[Schema], name: str = TOKENIZER) -> Any:
    """Read a tokenizer's file by a schema. Its other keys change nothing and are ignored."""
    settings = folder.files.read(schema, name, WHOLE)
    folder.files.unused[name].clear()
    return settings


def pieces_in_order(config: Any, pieces: Sequence[str], size: int) -> list[str]:
    """Return the pieces that follow our special ones, from those by their ids; name empty rows."""
    special = {name for name, _ in SPECIAL.values()}
    names = [*pieces, *(f"<unused {number}>" for number in range(len(pieces), size))]
    ordered = [names[number] for number in config.order(size)[len(SPECIAL) :]]
    ordered += [f"<unused {number}>" for number in range(size, config.pieces - 1)]
    return [f"<other {name}>" if name in special else name for name in ordered]


def check_special(pieces: Sequence[str], ids: Mapping[str, int], place: Any) -> None:
    """Refuse special pieces whose ids are not those of config.json."""
    for piece, number in ids.items():
        if pieces[number : number + 1] != [piece]:
            index = pieces.index(piece) if piece in pieces else None
            refuse(piece, place, f"{number}, as in config.json", index, WHOLE)


def read_pieces(folder: Any, name: str, most: int) -> list[str]:
    """Read the pieces by their ids from a JSON object {piece: id}."""
    path = required_file(folder.path, name, WHOLE)
    folder.files.unused.setdefault(name, [])
    ids = json_files.read_object(path, WHOLE, MOST_BYTES_OF_LISTS)
    if len(ids) > most:
        raise ValueError(
            f"{path} must have at most {most:,} pieces, as config.json says. Received: "
            f"{len(ids):,}. {WHOLE}"
        )
    return family.pieces_by_id(ids, path, WHOLE)
