"""The sentences that a served model is asked for."""

import json
import pathlib


def newest_version(folder):
    """The newest version in a SavedModel's folder."""
    return max(pathlib.Path(folder).glob("[0-9]*"), key=lambda path: int(path.name))


def sentences(folder, file=None):
    """Lines of a file; by default the sources of the test split that the model's run kept apart."""
    if file:
        return pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    from pipelines import corpora

    return list(corpora.load(**json.loads((newest_version(folder) / "model.json").read_text(encoding="utf-8"))["corpus"]).test.sources)
