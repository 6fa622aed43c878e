"""What a run measured after each epoch, read from its history: losses, and scores "on the
development set" (Vaswani et al. 2017, section 6.1).
"""

import json
import os
import pathlib


def read_results(path: str | os.PathLike) -> list[dict]:
    """The results that lead to the end of a run, from the file that `callbacks.Validation` writes.

    A run that was killed resumes from its last checkpoint and validates again what came after it: a
    line voids those before it of its own step or of a later one. A line that was cut has the next
    one glued to it; what cannot be read is passed over.

    Args:
        path: file of one flat JSON object a line; it need not exist.

    Returns:
        A dictionary for each line, with an integer "step", steps ascending.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return []
    results: list[dict] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            result = json.loads(line[line.rfind("{") :])
            result["step"] = int(result["step"])
        except (ValueError, KeyError, TypeError):
            continue
        results = [one for one in results if one["step"] < result["step"]] + [result]
    return results
