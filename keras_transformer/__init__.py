"""Train and serve your own translator: "Attention Is All You Need" (Vaswani et al. 2017) on
TensorFlow and Keras 3.
"""

import importlib
import importlib.metadata

# The version is said here alone: `setup.cfg` and the card of an export read it.
__version__ = "0.7.0.dev0"

# The public names, and where each is defined. A name is imported when it is first used: to get a
# layer, nobody waits for the rest, or loads TensorFlow on another Keras backend.
_HOMES = {
    "Decoder": "keras_transformer.layers",
    "DecoderLayer": "keras_transformer.layers",
    "DecodingOptions": "keras_transformer.decoding",
    "Encoder": "keras_transformer.layers",
    "EncoderLayer": "keras_transformer.layers",
    "Hyperparameters": "keras_transformer.models",
    "LabelSmoothedCrossEntropy": "keras_transformer.training.loss",
    "MultiHeadAttention": "keras_transformer.layers",
    "PositionalEmbedding": "keras_transformer.layers",
    "Transformer": "keras_transformer.models",
    "TransformerSchedule": "keras_transformer.training.schedule",
    "Translator": "keras_transformer.inference.translator",
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]


def _refuse_the_dead_namesake():
    """Refuse to run beside PyPI's `keras-transformer` (2022, another project), which has the same
    import name.
    """
    try:
        version = importlib.metadata.version("keras-transformer")
    except importlib.metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"The package `keras-transformer` {version} is installed: another, retired project with "
        "the same import name, whose files mix "
        "with ours. Run `pip uninstall keras-transformer`, then `pip install --force-reinstall "
        "--no-deps keras-transformer-nmt`."
    )


_refuse_the_dead_namesake()
