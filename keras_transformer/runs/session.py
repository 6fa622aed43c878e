"""One SavedModel in memory: its signatures, and what they give for arrays.

It is run in a session, as TF Serving runs it. `tf.saved_model.load` would take twice as long, and
keep the model's weights when it is dropped (measured: 100 MB for each of 6 versions of a model with
7.5M parameters; a session kept nothing).
"""

import contextlib
import dataclasses
import gc
import logging

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  a SavedModel's tokenizer needs its ops

DEFAULT_SIGNATURE = "serving_default"


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """What a signature takes or gives under a name.

    Args:
        name: of the tensor in the graph.
        dtype: a `tf.DType`.
        shape: sizes, None where any will do; or None where the rank is unknown.
    """

    name: str
    dtype: tf.DType
    shape: tuple | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """One of a SavedModel's functions.

    Args:
        inputs, outputs: `TensorSpec`s by name.
        defaults: arrays, for those of the inputs that may be left out.
    """

    inputs: dict
    outputs: dict
    defaults: dict

    @property
    def required(self):
        """Names of the inputs that a request must have."""
        return [name for name in self.inputs if name not in self.defaults]

    @property
    def plain_input(self):
        """Name of the input that a value without a name is meant for."""
        return (self.required or list(self.inputs))[0]

    @property
    def is_mergeable(self):
        """Whether requests can share a batch: not where the width of an output may depend on the
        longest text of the batch.
        """
        return all(spec.shape and None not in spec.shape[1:] for spec in self.outputs.values())


class SavedModel:
    """A loaded SavedModel.

    Args:
        folder: where `saved_model.pb` lies.

    Attributes:
        definitions: every SignatureDef by name, as it lies in the folder.
        signatures: each `Signature` that can be asked for, by name.

    Raises:
        tf.errors.OpError, OSError, ValueError: if it is damaged.
    """

    def __init__(self, folder):
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
        # Two versions are in memory while one replaces the other.
        config.gpu_options.allow_growth = True
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
        try:
            with self._session.graph.as_default(), _without_deprecations():
                meta_graph = tf.compat.v1.saved_model.load(self._session, [tf.saved_model.SERVING], str(folder))
        except Exception:
            self._session.close()
            raise
        self.definitions = dict(meta_graph.signature_def)
        self.signatures = {name: _signature(one) for name, one in self.definitions.items() if one.inputs}
        self._functions = {
            name: self._session.make_callable(
                [spec.name for spec in signature.outputs.values()], [spec.name for spec in signature.inputs.values()]
            )
            for name, signature in self.signatures.items()
        }

    def run(self, name, inputs):
        """Call a signature, from any thread.

        Args:
            name: the signature's.
            inputs: an array for each of its inputs.

        Returns:
            An array for each of its outputs.

        Raises:
            tf.errors.OpError: if TensorFlow refuses the inputs, or fails.
        """
        signature = self.signatures[name]
        outputs = self._functions[name](*(inputs[one] for one in signature.inputs))
        return dict(zip(signature.outputs, outputs, strict=True))

    def warm_up(self):
        """Translate nothing, once: TensorFlow rewrites the graph at the first call."""
        signature = self.signatures.get(DEFAULT_SIGNATURE)
        if signature and all(signature.inputs[name].dtype == tf.string for name in signature.required):
            text = np.array([b""], dtype=object)
            self.run(DEFAULT_SIGNATURE, {**signature.defaults, **dict.fromkeys(signature.required, text)})

    def close(self):
        """Give the memory back."""
        self._functions.clear()
        self._session.close()
        # Session and graph refer to each other, and Python would find that out much later.
        del self._session
        gc.collect()


def _signature(definition):
    return Signature(
        inputs=_specs(definition.inputs),
        outputs=_specs(definition.outputs),
        defaults={name: tf.make_ndarray(value) for name, value in sorted(definition.defaults.items())},
    )


def _specs(infos):
    """In the order of their names, as TF Serving lists them."""
    return {name: _spec(info) for name, info in sorted(infos.items())}


def _spec(info):
    shape = info.tensor_shape
    sizes = None if shape.unknown_rank else tuple(None if dimension.size < 0 else dimension.size for dimension in shape.dim)
    return TensorSpec(info.name, tf.as_dtype(info.dtype), sizes)


@contextlib.contextmanager
def _without_deprecations():
    """TensorFlow tells users of sessions not to use them."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def reload(version):
    """The `TranslationModule` of a SavedModel's folder.

    Raises:
        ValueError: if it is damaged.
    """
    try:
        return tf.saved_model.load(str(version))
    except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{version} is no SavedModel that can be loaded: {reason}") from error
