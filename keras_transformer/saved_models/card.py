"""The card of an export: `model.json` for programs, `README.md` for people."""

import contextlib
import importlib.metadata
import pathlib
import platform
import subprocess
from collections.abc import Mapping, Sequence

import tensorflow as tf

from keras_transformer import __version__
from keras_transformer.saved_models.served_module import ServedModule
from pipelines.whole_files import write_json

PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")


def write(
    folder: pathlib.Path,
    module: ServedModule,
    description: Mapping,
    facts: Mapping,
    remark: str,
    packages: Sequence[str] = PACKAGES,
) -> None:
    """Write `model.json`, the run's description and further facts, and `README.md`."""
    card = _card(module, description, facts, packages)
    write_json(folder / "model.json", card)
    (folder / "README.md").write_text(_readme(module, card, remark), encoding="utf-8")


def _card(module, description, facts, packages):
    is_half = any(variable.dtype == tf.bfloat16 for variable in module.variables)
    return {
        **description,
        **module.facts(),
        "precision": "bfloat16" if is_half else "float32",
        "parameters": sum(variable.shape.num_elements() for variable in module.variables),
        **facts,
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in packages},
            "keras_transformer": __version__,
        },
        "commit": _commit(),
    }


def _readme(module, card, remark):
    rows = {
        **module.rows(card),
        "parameters": f"{card['parameters']:,}, {card['precision']}",
        "sizes": _listed(card.get("hyperparameters", {})),
        "versions": _listed(card["versions"]),
        "commit": card["commit"] or "unknown",
    }
    table = "".join(
        f"| {name} | {str(value).replace('|', chr(92) + '|')} |\n" for name, value in rows.items()
    )
    return f"# {module.title(card)}\n\n{module.summary}\n\n| | |\n|---|---|\n{table}\n{remark}"


def _listed(values):
    return (
        ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
        or "unknown"
    )


def _version(package):
    """Return None for a build of another name, such as tensorflow-cpu or onnxruntime-gpu."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)


def _commit():
    """Return the commit of this file's checkout, with "+" if files changed since; None without one,
    also for an installed package, which may lie in the checkout of another project.
    """
    git = ["git", "-C", str(pathlib.Path(__file__).parent)]
    tracked = [*git, "ls-files", "--error-unmatch", __file__]
    describe = [*git, "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]
    try:
        subprocess.run(tracked, capture_output=True, check=True)
        answer = subprocess.run(describe, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()
