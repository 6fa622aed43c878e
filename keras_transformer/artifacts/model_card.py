"""What a SavedModel says of itself: `model.json` for programs, `README.md` for people."""

import dataclasses
import importlib.metadata
import pathlib
import platform
import subprocess

from keras_transformer import __version__

PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")


def card(module, description, signatures):
    """All that is known of what is exported, for `model.json`.

    Args:
        module: a `TranslationModule`.
        description: of the run, with `scores` if it was scored.
        signatures: names of what it may be asked.
    """
    return {
        **description,
        "vocabulary": {
            "pieces": module.vocabulary.size,
            "fingerprint": module.vocabulary.fingerprint,
        },
        "decoding": {
            name: value
            for name, value in dataclasses.asdict(module.options).items()
            if value is not None
        },
        "precision": "bfloat16"
        if any(weight.dtype == "bfloat16" for weight in module.weights)
        else "float32",
        "parameters": sum(weight.shape.num_elements() for weight in module.weights),
        "signatures": sorted(signatures),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
            "keras_transformer": __version__,
        },
        "commit": _commit(),
    }


def as_text(card):
    """The same in Markdown, for `README.md`."""
    corpus = card.get("corpus", {})
    scores = card.get("scores", {})
    languages = (
        f"{corpus['source_language']} to {corpus['target_language']}" if corpus else "not told"
    )
    score = (
        f"BLEU {scores['bleu']}, chrF {scores['chrf']} ({scores['weights']})"
        if scores
        else "not told"
    )
    rows = {
        "languages": languages,
        "trained on": corpus.get("dataset")
        or corpus.get("data_dir")
        or corpus.get("name", "not told"),
        "test set": score,
        "signature of BLEU": scores.get("bleu_signature", "not told"),
        "parameters": f"{card['parameters']:,}, {card['precision']}",
        "sizes": _listed(card.get("hyperparameters", {})),
        "decoding": _listed(card["decoding"]),
        "vocabulary": f"{card['vocabulary']['pieces']:,} pieces, "
        f"{card['vocabulary']['fingerprint']}",
        "versions": _listed(card["versions"]),
        "commit": card["commit"] or "not told",
    }
    table = "".join(
        f"| {name} | {str(value).replace('|', chr(92) + '|')} |\n" for name, value in rows.items()
    )
    return (
        f"# A translator, {languages}\n\n"
        "A Transformer (Vaswani et al. 2017, arXiv 1706.03762) of keras_transformer: strings in, "
        "strings out.\n\n"
        f"| | |\n|---|---|\n{table}\n"
        f"Signatures: {', '.join(card['signatures'])}. `assets.extra/golden.jsonl` has sentences "
        "and what they were\n"
        "translated to when this was exported; `assets.extra/batching_parameters.txt` is for TF "
        "Serving's `--batching_parameters_file`.\n"
    )


def _listed(values):
    return (
        ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
        or "not told"
    )


def _commit():
    """Of the checkout that this file lies in, "+" if it was changed since; None where it lies in
    none.
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
