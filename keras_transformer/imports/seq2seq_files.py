"""What the folder of one of Hugging Face's translators says besides sizes and weights: its pieces,
and how it decodes, in generation_config.json (Wolf et al. 2020, "Transformers: State-of-the-Art
Natural Language Processing").
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from keras_transformer.imports.family import ANOTHER, NEVER, Factor, Natural, Size, pieces_by_id
from keras_transformer.imports.folder_files import required_file
from pipelines import json_files
from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, refuse
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies.other_order import SPECIAL

GENERATION = "generation_config.json"
TOKENIZER = "tokenizer_config.json"
NONE = (None,)
AGAIN = "Save the model and its tokenizer again, all files."


class Generation(Schema):
    """What generation_config.json may say, or the config.json of an older folder."""

    FIXED: ClassVar = {
        "begin_suppress_tokens": NONE,
        "constraints": NONE,
        "diversity_penalty": (0.0, 0, None),
        "do_sample": (False, None),
        "encoder_no_repeat_ngram_size": (0, None),
        "exponential_decay_length_penalty": NONE,
        "force_words_ids": NONE,
        "forced_decoder_ids": NONE,
        "guidance_scale": NONE,
        "min_length": (0, None),
        "min_new_tokens": NONE,
        "no_repeat_ngram_size": (0, None),
        "num_beam_groups": (1, None),
        "penalty_alpha": NONE,
        "repetition_penalty": (1.0, 1, None),
        "sequence_bias": NONE,
        "suppress_tokens": NONE,
    }
    HARMLESS: ClassVar = (
        *("_from_model_config", "bos_token_id", "forced_eos_token_id", "output_attentions"),
        *("output_hidden_states", "transformers_version", "use_cache"),
    )

    num_beams: Size = 1
    length_penalty: Factor = 1.0
    early_stopping: bool | Literal["never"] = False
    max_length: Size | None = None
    bad_words_ids: list[list[Natural]] | None = None
    forced_bos_token_id: Natural | None = None
    renormalize_logits: bool = False
    decoder_start_token_id: Natural | None = None
    eos_token_id: Natural | list[Natural] | None = None
    pad_token_id: Natural | None = None


def place(folder: Any) -> pathlib.Path:
    """The file that says how the model of a `PretrainedFolder` decodes."""
    path = folder.path / GENERATION
    return path if path.exists() else folder.path / "config.json"


def generation(folder: Any) -> Generation:
    """How the model of a `PretrainedFolder` decodes."""
    path = place(folder)
    document = json_files.read_object(path, ANOTHER)
    said, unknown = json_files.settings(Generation, document, path, ANOTHER)
    if path.name == GENERATION:
        folder.files.unused[GENERATION] = unknown
    for name in ("decoder_start_token_id", "eos_token_id", "pad_token_id"):
        own = getattr(folder.config, name)
        if (value := getattr(said, name)) not in (None, own, [own]):
            refuse(name, path, f"{own}, as in config.json", value, AGAIN)
    return said


def barred_ids(folder: Any, said: Generation) -> list[int]:
    """The ids of ours that `bad_words_ids` names."""
    words = said.bad_words_ids or []
    size = folder.config.sizes()[1]
    if any(len(word) != 1 or word[0] >= size for word in words):
        refuse("bad_words_ids", place(folder), f"lists of one id below {size}", words, ANOTHER)
    order = folder.config.order(size).tolist()
    return [number for number, one in enumerate(order) if [one] in words]


def decoding(folder: Any) -> dict[str, Any]:
    """How the model of a `PretrainedFolder` decodes: arguments of `DecodingOptions`."""
    said = generation(folder)
    forms = {True: "until_full", False: "until_worse", "never": "leaving"}
    # Theirs count what the decoder begins with.
    longest = said.max_length or folder.config.max_position_embeddings
    return {
        "beam_size": said.num_beams,
        "length_penalty": said.length_penalty,
        "length_penalty_form": "length",
        "beam_form": forms[said.early_stopping],
        "max_length": str(max(longest - 1, 1)),
        "min_length": "1",
        # PAD and BOS never come.
        "barred": [one for one in barred_ids(folder, said) if one not in (PAD, BOS)],
    }


def finish(folder: Any, model: Any) -> None:
    """Bar from the softmax what `renormalize_logits` says has no share of it."""
    said = generation(folder)
    if said.renormalize_logits and said.bad_words_ids:
        bias = model.projection.bias
        values = bias.numpy()
        values[barred_ids(folder, said)] = NEVER
        bias.assign(values)


def read_tokenizer(folder: Any, schema: type[Schema], name: str = TOKENIZER) -> Any:
    """What a file of a tokenizer says by a schema. What else it says are notes of transformers."""
    said = folder.files.read(schema, name, AGAIN)
    folder.files.unused[name].clear()
    return said


def pieces_in_order(config: Any, pieces: Sequence[str], size: int) -> list[str]:
    """The pieces behind our special ones, of those by their ids; rows without one are named too."""
    taken = {name for name, _ in SPECIAL.values()}
    named = [*pieces, *(f"<unused {number}>" for number in range(len(pieces), size))]
    found = [named[number] for number in config.order(size)[len(SPECIAL) :]]
    found += [f"<unused {number}>" for number in range(size, config.pieces - 1)]
    return [f"<other {name}>" if name in taken else name for name in found]


def check_special(pieces: Sequence[str], ids: Mapping[str, int], place: Any) -> None:
    """Refuse pieces of which the special ones have other ids than config.json says."""
    for piece, number in ids.items():
        if pieces[number : number + 1] != [piece]:
            found = pieces.index(piece) if piece in pieces else None
            refuse(piece, place, f"{number}, as in config.json", found, AGAIN)


def read_pieces(folder: Any, name: str, most: int) -> list[str]:
    """The pieces by their ids, of a JSON object of ids."""
    path = required_file(folder.path, name, AGAIN)
    folder.files.unused.setdefault(name, [])
    ids = json_files.read_object(path, AGAIN, MOST_BYTES_OF_LISTS)
    if len(ids) > most:
        raise ValueError(
            f"{path} must have at most {most:,} pieces, as config.json says. Received: "
            f"{len(ids):,}. {AGAIN}"
        )
    return pieces_by_id(ids, path, AGAIN)
