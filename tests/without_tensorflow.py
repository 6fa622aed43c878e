"""The beginning of a program that may import neither TensorFlow nor what comes with it."""

BEGINNING = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text", "keras", "jax", "torch"):
            raise ImportError(f"{name} is forbidden here")

sys.meta_path.insert(0, Forbidden())
"""
