"""The line that says how a new export is tried."""

import pathlib


def trial(text: str, command: str, version: pathlib.Path) -> str:
    """A line for a shell.

    Args:
        text: what the model is asked.
        command: of this package, which asks it.
        version: the folder of the SavedModel.
    """
    quoted = text.replace("'", "'\\''")
    return f"  echo '{quoted}' | python -m keras_transformer.{command} --model={version}"
