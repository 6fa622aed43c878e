"""Train and serve your own translator: "Attention Is All You Need" (Vaswani et al. 2017)."""

import os
import pathlib
import signal
import sys

from keras_transformer.first_use import imported_at_first_use

# The only place of the version: `setup.cfg` and the card of an export read it from here.
__version__ = "0.7.0.dev0"

# The public names and the modules that define them. A name is imported at its first use: a layer
# alone costs no import of the rest, and none of TensorFlow on another Keras backend.
_HOMES = {
    "Decoder": "layers",
    "DecoderLayer": "layers",
    "DecodingOptions": "decoding",
    "Encoder": "layers",
    "EncoderLayer": "layers",
    "Hyperparameters": "models",
    "LabelSmoothedCrossEntropy": "training.loss",
    "MultiHeadAttention": "layers",
    "PositionalEmbedding": "layers",
    "Transformer": "models",
    "TransformerSchedule": "training.optimizer",
    "Translator": "inference.translator",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = imported_at_first_use(__name__, _HOMES)


def end_when_interrupted(*_) -> None:
    """End a command in one line, where nothing has to be cleaned up."""
    os.write(2, b"error: interrupted.\n")
    os._exit(130)


# A command, `python -m keras_transformer.NAME`, imports this file first: Ctrl-C ends it until
# `flags.run` takes over. Other programs, and processes that ignore Ctrl-C, are left alone.
if (
    sys.argv[0] == "-m"
    and sys.orig_argv[-len(sys.argv)].startswith(f"{__name__}.")
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, end_when_interrupted)


def _refuse_the_dead_namesake():
    """Refuse to run beside PyPI's `keras-transformer` (2022), which has the same import name."""
    # `importlib.metadata` knows it too, but its import takes as long as a short translation.
    for folder in sys.path:
        for namesake in pathlib.Path(folder).glob("keras_transformer-*.dist-info"):
            raise ImportError(
                f"The package `keras-transformer` is installed ({namesake}): another, retired "
                "project with the same import name, whose files mix with ours. Run `pip uninstall "
                "keras-transformer`, then `pip install --force-reinstall --no-deps "
                "keras-transformer-nmt`."
            )


_refuse_the_dead_namesake()
