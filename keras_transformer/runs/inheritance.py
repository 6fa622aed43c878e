"""Options that a run inherits from the model that --init_from names, so that the user need not
repeat them: sizes and variants (Vaswani et al. 2017, table 3), and from an imported model also its
vocabulary and decoding.
"""

from collections.abc import Callable, Mapping, Set
from typing import Any

from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.initialization import WITHOUT_A_SHAPE
from keras_transformer.runs.model_path import ModelPath

# Options of training that stand among the hyperparameters.
OF_TRAINING = (
    *("dropout", "attention_dropout", "activation_dropout", "token_dropout", "label_smoothing"),
    "residual_initialization",
)
NOT_INHERITED = {"vocabulary_size", "architecture"}
# A shallower model starts from some of the layers (`initialization.fewer_layers`).
DEPTHS = ("num_layers", "num_decoder_layers")
OF_IMPORTED = ("imported", "decoding")


def inherited(
    values: Mapping[str, Any], explicit: Set[str], default_dir: Callable[[Mapping], str]
) -> dict[str, Any]:
    """Return the values of a command's flags, by name. Where no flag is `explicit`, the value is
    that of the run which is resumed, or else started from. For an imported model add "imported"
    and "decoding", as `model.json` has them.
    """
    origin = values["init_from"]
    if not origin:
        return dict(values)
    run = RunFolder(values["model_dir"] or default_dir(values))
    description = run.read_description() if run.is_started else ModelPath.of(origin).describe()
    sizes = {
        name: value
        for name, value in (description.get("hyperparameters") or {}).items()
        if name in {*values, "architecture"} and name not in OF_TRAINING
    }
    is_imported = "imported" in description
    if not run.is_started:
        _refuse_contradictions(values, explicit, sizes, origin, is_imported)
    inheritance = {name: sizes[name] for name in sizes.keys() - explicit - NOT_INHERITED}
    if is_imported:
        if "source_language" in description.get("decoding", {}):
            raise ValueError(
                f"{origin} translates between many languages by labels before its texts, and "
                "training gives texts no labels. Pass another --init_from."
            )
        inheritance |= {name: description[name] for name in OF_IMPORTED if name in description}
        if "vocabulary_from" in values and not {"vocabulary_from", "vocabulary_size"} & explicit:
            resumed = description.get("asked", {}).get("vocabulary_from")
            inheritance["vocabulary_from"] = resumed if run.is_started else origin
            inheritance["vocabulary_size"] = sizes["vocabulary_size"]
    return {**values, **inheritance}


def _refuse_contradictions(values, explicit, sizes, origin, is_imported):
    """Refuse sizes that the weights do not fit, and for an imported model other variants.

    For a model that was trained here, `start_from` warns of other variants.
    """
    architectures = [options.get("architecture", "transformer") for options in (sizes, values)]
    if architectures[0] != architectures[1]:
        raise ValueError(
            f"{origin} has the architecture {architectures[0]}. Received: {architectures[1]}. Pass "
            f"--architecture={architectures[0]}."
        )
    for name in sizes.keys() & explicit - {"vocabulary_size"}:
        was = sizes[name]
        if was is None or values[name] == was:
            continue
        is_warned = name in WITHOUT_A_SHAPE and not is_imported
        is_added = name == "block_size" and was == 1
        is_fewer = name in DEPTHS and values[name] < was
        if not (is_warned or is_fewer or (is_added and not values.get("lora_rank"))):
            raise ValueError(
                f"--{name} must be {was}{' with --lora_rank' if is_added else ''}, as it was for "
                f"{origin}, whose weights do not fit another model. Received: {name}="
                f"{values[name]}. Leave it out to inherit it."
            )
