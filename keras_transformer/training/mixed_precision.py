"""Which arithmetic a run uses (the hardware of Vaswani et al. 2017, section 5.2).

Float32, or bfloat16 with float32 weights where the machine is fast at it.
"""

import pathlib
from collections.abc import Iterable

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
FAST_BFLOAT16 = {"avx512_bf16", "amx_bf16"}


def dtype_policy(mixed_precision: str, cpu_flags: Iterable[str] | None = None) -> str:
    """Choose the Keras dtype policy of a run.

    Args:
        mixed_precision: "float32", "bfloat16", or "auto": bfloat16 where the processor multiplies
            matrices in it.
        cpu_flags: the processor's features; read from the system when left out.

    Returns:
        "float32" or "mixed_bfloat16".

    Raises:
        ValueError: if `mixed_precision` is none of the three.
    """
    if mixed_precision == "auto":
        flags = _cpu_flags() if cpu_flags is None else set(cpu_flags)
        mixed_precision = "bfloat16" if FAST_BFLOAT16 & flags else "float32"
    if mixed_precision not in POLICIES:
        raise ValueError(
            f"`mixed_precision` must be auto, {' or '.join(POLICIES)}. Received: "
            f"{mixed_precision!r}."
        )
    return POLICIES[mixed_precision]


def in_words(mixed_precision: str, policy: str, on_gpu: bool = False) -> str:
    """Say what is computed in, and with "auto" why.

    Args:
        mixed_precision: as in `dtype_policy`.
        policy: what it returned.
        on_gpu: whether a GPU computes, of which "auto" knows nothing.
    """
    name = next(name for name, of_name in POLICIES.items() if of_name == policy)
    reasons = {
        "bfloat16": ", because this processor multiplies in it",
        "float32": ", because this processor does not multiply in bfloat16",
    }
    if mixed_precision != "auto":
        return f"computing in {name}"
    if on_gpu:
        return f"computing in {name}, chosen by the CPU: the GPU may want --mixed_precision"
    return f"computing in {name}{reasons[name]}"


def _cpu_flags():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    return {
        flag
        for line in text.splitlines()
        if line.startswith("flags")
        for flag in line.split(":", 1)[1].split()
    }
