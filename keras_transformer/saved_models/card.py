"""What a SavedModel says of itself: `model.json` for programs, `README.md` for people."""

import importlib.metadata
import pathlib
import platform
import subprocess
from collections.abc import Iterable, Mapping

import tensorflow as tf

from keras_transformer import __version__
from keras_transformer.saved_models.artifact import Artifact

PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")


def card(artifact: Artifact, description: Mapping, signatures: Iterable[str]) -> dict:
    """Gather what is known of what is exported, for `model.json`.

    Args:
        artifact: what is exported.
        description: of the run, with `scores` if it was scored.
        signatures: names of those it can be asked by.
    """
    weights = artifact.weights
    return {
        **description,
        **artifact.facts(),
        "precision": "bfloat16"
        if any(weight.dtype == tf.bfloat16 for weight in weights)
        else "float32",
        "parameters": sum(weight.shape.num_elements() for weight in weights),
        "signatures": sorted(signatures),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
            "keras_transformer": __version__,
        },
        "commit": _commit(),
    }


def as_text(artifact: Artifact, card: Mapping) -> str:
    """Write the same in Markdown, for `README.md`."""
    rows = {
        **artifact.rows(card),
        "parameters": f"{card['parameters']:,}, {card['precision']}",
        "sizes": _listed(card.get("hyperparameters", {})),
        "versions": _listed(card["versions"]),
        "commit": card["commit"] or "unknown",
    }
    table = "".join(
        f"| {name} | {str(value).replace('|', chr(92) + '|')} |\n" for name, value in rows.items()
    )
    return (
        f"# {artifact.title(card)}\n\n{artifact.what}\n\n"
        f"| | |\n|---|---|\n{table}\n"
        f"Signatures: {', '.join(card['signatures'])}. `assets.extra/golden.jsonl` has examples "
        "and what came out for\n"
        "them when this was exported; `assets.extra/batching_parameters.txt` is for TF Serving's "
        "`--batching_parameters_file`.\n"
    )


def _listed(values):
    return (
        ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
        or "unknown"
    )


def _commit():
    """The commit of the checkout that this file lies in, and "+" if files changed since; None where
    it lies in no checkout.
    """
    here = pathlib.Path(__file__).parent
    try:
        answer = subprocess.run(
            [
                "git",
                "-C",
                str(here),
                "describe",
                "--always",
                "--abbrev=40",
                "--dirty=+",
                "--exclude=*",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return answer.stdout.strip() or None
