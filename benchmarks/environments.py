"""Environments of the peers that need other packages than ours; each is made once, in the user's
cache folder.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Environment:
    """A virtual environment for one peer.

    Args:
        name: name of its folder.
        packages: what pip installs into it.
        maker: the Python that makes it, a name or a path.
    """

    name: str
    packages: tuple
    maker: str = sys.executable

    def find_or_make(self):
        """Return the environment's interpreter; make the environment if it is missing.

        Returns:
            (path of the interpreter, None), or (None, the reason why there is none).
        """
        folder = (
            pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
            / "keras_transformer"
            / self.name
        )
        python = folder / "bin" / "python"
        installed = folder / "installed"
        wanted = "\n".join(self.packages)
        if installed.exists() and installed.read_text() == wanted:
            return python, None
        maker = shutil.which(self.maker)
        if not maker:
            return None, f"needs {self.maker}, which was not found"
        print(f"installing {self.packages[0]} into {folder} ...", flush=True)
        try:
            # An environment that only lacks a package is not made anew.
            if not installed.exists():
                subprocess.run(
                    [maker, "-m", "venv", "--clear", folder],
                    check=True,
                    capture_output=True,
                    text=True,
                )
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", *self.packages],
                check=True,
                capture_output=True,
                text=True,
            )
        except subprocess.CalledProcessError as error:
            return (
                None,
                "could not be installed: "
                f"{(error.stderr.strip().splitlines() or ['no reason given'])[-1][:200]}",
            )
        installed.write_text(wanted)
        return python, None


# OpenNMT-tf 2.32 needs TensorFlow 2.13, which needs Python 3.11 at most.
OPENNMT = Environment(
    "opennmt",
    ("OpenNMT-tf==2.32.0", "tensorflow==2.13.*", "numpy<2", "setuptools", "sentencepiece>=0.2"),
    "python3.11",
)
MARIAN = Environment(
    "marian", ("transformers==5.23.0", "torch==2.13.0", "numpy", "sentencepiece>=0.2")
)
