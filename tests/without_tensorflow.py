"""Commands in a process that may import neither TensorFlow nor what comes with it."""

import sys

PROGRAM = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text", "keras", "jax", "torch"):
            raise ImportError(f"{name} is forbidden here")

sys.meta_path.insert(0, Forbidden())
from keras_transformer import COMMAND, flags

flags.run(COMMAND.main, COMMAND.SECTIONS)
"""


def without_tensorflow(name, *flags):
    """The words of such a command."""
    return [sys.executable, "-c", PROGRAM.replace("COMMAND", name), *flags]
