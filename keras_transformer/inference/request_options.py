"""The options of a search that a SavedModel takes. What lies beyond the limits a server clamps, and
Python refuses.
"""

from collections.abc import Mapping

from keras_transformer.decoding import DecodingOptions

# An export with a wider beam than this allows its own.
MOST_HYPOTHESES = 32
STEEPEST_PENALTY = 10.0
# Tokens of a translation.
LONGEST = 2048
# The options that a signature takes.
OPTIONS = {
    "serving_default": (),
    "translate": ("beam_size", "length_penalty", "max_length", "num_hypotheses"),
    "sample": ("temperature", "seed"),
}


def request(options: Mapping, beam_size: int | None) -> tuple[str, dict]:
    """The signature that translates with some options, and those of them that it takes.

    Args:
        options: arguments of `DecodingOptions`; None: as exported.
        beam_size: the exported one; None if it is not known.

    Raises:
        ValueError: if an option is out of range, or no signature takes it.
    """
    given = {name: value for name, value in options.items() if value is not None}
    searched = {} if beam_size is None or given.get("samples") else {"beam_size": beam_size}
    DecodingOptions(**searched | given)
    samples = given.pop("samples", 0)
    if samples > 1:
        raise ValueError(
            f"samples={samples}: a SavedModel draws one translation of a line. Pass samples=1, or "
            "name the folder of its run."
        )
    signature = "sample" if samples else "translate" if given else "serving_default"
    for name, value in given.items():
        if name not in OPTIONS[signature]:
            raise ValueError(
                f"{name}={value}: a SavedModel takes {', '.join(OPTIONS[signature])} and no other "
                "option. Name the folder of its run, or export it with other options (python -m "
                "keras_transformer.export)."
            )
    if not str(given.get("max_length", 0)).isdecimal():
        raise ValueError(
            f"max_length={given['max_length']}: a SavedModel takes a number of tokens. Pass one "
            "such as 80, or name the folder of its run."
        )
    return signature, given


def limits(description: Mapping) -> dict[str, float]:
    """The most that options may be, by name.

    Args:
        description: `model.json` of the SavedModel.
    """
    exported = description.get("decoding", {}).get("beam_size", 1)
    most = max(MOST_HYPOTHESES, exported)
    return {
        "beam_size": most,
        "num_hypotheses": most,
        "length_penalty": STEEPEST_PENALTY,
        "max_length": LONGEST,
    }
