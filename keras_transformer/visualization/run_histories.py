"""Loss and scores of several runs after each epoch, read from their folders."""

import pathlib
from collections.abc import Mapping, Sequence

from keras_transformer.runs.folder import RunFolder
from keras_transformer.training.history import read_results
from keras_transformer.visualization.line_chart import Panel

# What a line of the history calls each measure, and how it is shown.
MEASURES = {
    "loss": "training loss, nats a label",
    "val_cross_entropy": "validation cross-entropy, nats a label",
    "val_bleu": "validation BLEU",
}


def read_history(path: str) -> list[dict]:
    """What a run measured, a dictionary for each epoch, as `history.read_results` gives it. A line
    that is still being written is left out.

    Raises:
        FileNotFoundError: if there is no run, or it has not measured anything yet.
        ValueError: naming the file, if no line of it can be read.
    """
    folder = RunFolder(path)
    folder.read_description()
    if not folder.history.exists():
        raise FileNotFoundError(
            f"{path} has no {folder.history.name} yet: it is written at the end of an epoch. "
            "Train on."
        )
    results = read_results(folder.history)
    if not results:
        raise ValueError(
            f"{folder.history} must hold a line of JSON for each epoch. Received: none that can be "
            "read. Leave this run out, or train on."
        )
    return results


def names_of(paths: Sequence[str]) -> list[str]:
    """The names of folders, where these differ; else the whole paths."""
    names = [pathlib.Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _whole_epochs(history):
    """A history without an epoch that a limit ended within a tenth of its steps: its loss is a mean
    of these few.
    """
    steps = [line["step"] for line in history]
    made = [after - before for before, after in zip([0, *steps], steps, strict=False)]
    return [line for line, count in zip(history, made, strict=True) if count * 10 > max(made)]


def panels(histories: Mapping[str, Sequence[Mapping]]) -> list[Panel]:
    """A panel for each measure that a run has, and in it a series for each run that has it.

    Args:
        histories: {name of a run: what `read_history` gave}.

    Raises:
        ValueError: if no run has any of them.
    """
    found = []
    for key, title in MEASURES.items():
        series = {}
        for name, history in histories.items():
            epochs = _whole_epochs(history)
            points = [(line["step"], line[key]) for line in epochs if key in line]
            if points:
                series[name] = tuple(zip(*points, strict=True))
        if series:
            found.append(Panel(title, "step", series))
    if not found:
        raise ValueError(
            f"the histories of {', '.join(histories)} hold none of {', '.join(MEASURES)}. Name "
            "the runs of translators that have trained for an epoch."
        )
    return found
