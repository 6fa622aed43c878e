"""Checks an exported model in another process before its version becomes visible."""

import json
import os
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).with_name("clean_process.py")


def check(folder: pathlib.Path) -> None:
    """Ask a SavedModel for its golden examples in a clean process, alone and in a batch, and check
    its operations.

    Args:
        folder: of a version, with `assets.extra/golden.jsonl`.

    Raises:
        ValueError: if it cannot be loaded, gives another output, or needs what stock TF Serving
            does not link.
    """
    found = report(folder)
    if found["different"]:
        first = found["different"][0]
        raise ValueError(
            f"nothing was exported: {len(found['different'])} golden examples come out otherwise "
            "than from the live model. The first, "
            f"{first['way']}: {first['inputs']} to {first['came']}, expected {first['expected']}."
        )
    if found["not_served"]:
        raise ValueError(
            "nothing was exported: stock TF Serving does not link "
            f"{', '.join(found['not_served'])}."
        )


def report(folder: pathlib.Path) -> dict:
    """Run `clean_process` on a version, and give what it prints."""
    # From another folder, and isolated (-I), so that no package of ours is on its path by chance.
    process = subprocess.run(
        [sys.executable, "-I", PROGRAM, pathlib.Path(folder).resolve()],
        capture_output=True,
        cwd="/",
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    if process.returncode:
        reason = (
            process.stderr.decode(errors="replace").strip() or f"status {process.returncode}"
        ).splitlines()[-1]
        raise ValueError(
            "nothing was exported: what was written does not run in a process of its own "
            f"({reason})."
        )
    return json.loads(process.stdout)
