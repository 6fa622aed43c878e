"""Options of fine-tuning: what a run starts from, and which weights learn (Hu et al. 2021, "LoRA:
Low-Rank Adaptation of Large Language Models").
"""

import types

from pipelines.options import FIXED, REPORTED, Options, option


def is_above_0(number: str) -> bool:
    """Return whether a number, as text, is not 0."""
    return number.strip("0.") != ""


OF_LOW_RANK = types.MappingProxyType(
    {"resumed": FIXED, "only": {"lora_rank": is_above_0}, "only_words": "--lora_rank above 0"}
)


class FineTuning(Options):
    """Fine-tuning."""

    init_from: str | None = option(
        None,
        "Start from the weights of this model: a run's folder, a checkpoint in it, or a "
        "SavedModel.",
        path=True,
        resumed=REPORTED,
    )
    freeze: tuple[str, ...] = option(
        (),
        "Layers or weights that do not learn, by name or pattern, such as "
        "embedding,encoder/layer_[01],*/cross_attention.",
        resumed=FIXED,
    )
    lora_rank: int = option(
        0,
        "Rank r of LoRA (Hu et al. 2021), such as 8: each matrix W of --lora_on becomes W + alpha "
        "/ r A B. Only A, B and weights that --init_from does not set learn. 0: no LoRA.",
        at_least=0,
        resumed=FIXED,
    )
    lora_on: tuple[str, ...] = option(
        ("query", "value"),
        "Matrices that LoRA adapts, by name or pattern: query, key, value and output of "
        "attentions, inner and outer of feed-forward networks; or decoder/*/query, for example.",
        **OF_LOW_RANK,
    )
    lora_alpha: float | None = option(
        None,
        "Factor alpha of LoRA. Default: --lora_rank, so that A B is added as it is.",
        at_least=0,
        **OF_LOW_RANK,
    )


class AdapterChoice(Options):
    """Adapter."""

    adapter: str | None = option(
        None,
        "File adapter.npz of a run with --lora_rank, to add to the weights of the model that the "
        "run started from.",
        path=True,
        resumed=REPORTED,
    )
