"""OpenNMT-tf 2.32 needs TensorFlow 2.13 and Python 3.11 at most: an environment of its own, made once in the user's cache folder."""

import os
import pathlib
import shutil
import subprocess

PACKAGES = ("OpenNMT-tf==2.32.0", "tensorflow==2.13.*", "numpy<2", "setuptools")


def find_or_make():
    """The environment's interpreter.

    Returns:
        (its path, None), or (None, why there is none).
    """
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "keras_transformer" / "opennmt"
    python, whole = folder / "bin" / "python", folder / "installed"
    if whole.exists():
        return python, None
    maker = shutil.which("python3.11")
    if not maker:
        return None, "needs python3.11, which was not found"
    print(f"installing {PACKAGES[0]} into {folder} ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        subprocess.run([maker, "-m", "venv", folder], check=True, capture_output=True, text=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        return None, f"could not be installed: {(error.stderr.strip().splitlines() or ['no reason given'])[-1][:200]}"
    whole.touch()
    return python, None
