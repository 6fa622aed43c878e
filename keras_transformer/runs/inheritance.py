"""What a run takes over from the one that --init_from names, besides weights: sizes and variants
(Vaswani et al. 2017, table 3), which the user need not repeat; of an imported model its vocabulary
and its decoding too.
"""

from collections.abc import Callable, Mapping, Set
from typing import Any

from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.initialization import WITHOUT_A_SHAPE
from keras_transformer.runs.model_path import ModelPath

# What training chooses, though it stands with the sizes.
OF_TRAINING = (
    *("dropout", "attention_dropout", "activation_dropout", "token_dropout", "label_smoothing"),
    "residual_initialization",
)
NOT_TAKEN = {"vocabulary_size", "architecture"}
# A shallower model takes some of the layers (`initialization.fewer_layers`).
DEPTHS = ("num_layers", "num_decoder_layers")
OF_IMPORTED = ("imported", "decoding")


def inherited(
    values: Mapping[str, Any], given: Set[str], default_dir: Callable[[Mapping], str]
) -> dict[str, Any]:
    """The values of a command's flags, by name, with those of the run that it starts from or goes
    on with where no flag was given; of what is imported also "imported" and "decoding", as
    `model.json` has them.
    """
    origin = values["init_from"]
    if not origin:
        return dict(values)
    own = RunFolder(values["model_dir"] or default_dir(values))
    description = own.read_description() if own.is_started else ModelPath.of(origin).describe()
    sizes = {
        name: value
        for name, value in (description.get("hyperparameters") or {}).items()
        if name in {*values, "architecture"} and name not in OF_TRAINING
    }
    is_imported = "imported" in description
    if not own.is_started:
        _refuse_contradictions(values, given, sizes, origin, is_imported)
    found = {name: sizes[name] for name in sizes.keys() - given - NOT_TAKEN}
    if is_imported:
        if "source_language" in description.get("decoding", {}):
            raise ValueError(
                f"{origin} translates between many languages by labels before its texts, and "
                "training gives texts no labels. Pass another --init_from."
            )
        found |= {name: description[name] for name in OF_IMPORTED if name in description}
        if "vocabulary_from" in values and not {"vocabulary_from", "vocabulary_size"} & given:
            asked = description.get("asked", {}).get("vocabulary_from")
            found["vocabulary_from"] = asked if own.is_started else origin
            found["vocabulary_size"] = sizes["vocabulary_size"]
    return {**values, **found}


def _refuse_contradictions(values, given, sizes, origin, is_imported):
    """Refuse other sizes, and of an imported model other variants, which its weights do not fit.

    Those of one that was trained here are told by `start_from`.
    """
    architectures = [one.get("architecture", "transformer") for one in (sizes, values)]
    if architectures[0] != architectures[1]:
        raise ValueError(
            f"{origin} has the architecture {architectures[0]}. Received: {architectures[1]}. Pass "
            f"--architecture={architectures[0]}."
        )
    for name in sizes.keys() & given - {"vocabulary_size"}:
        was = sizes[name]
        if was is None or values[name] == was:
            continue
        is_told = name in WITHOUT_A_SHAPE and not is_imported
        is_added = name == "block_size" and was == 1
        is_fewer = name in DEPTHS and values[name] < was
        if not (is_told or is_added or is_fewer):
            raise ValueError(
                f"--{name} must be {was}, as it was for {origin}, whose weights do not fit another "
                f"model. Received: {name}={values[name]}. Leave it out: the sizes of the other are "
                "taken."
            )
