"""The self-attention of models with one stack: language models and text encoders (figures 3 to 5 of
Vaswani et al. 2017 show a translator's).
"""

from collections.abc import Callable

from keras_transformer.inference.functions import LiveFunctions, saved_functions
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks import TASKS, task_class
from keras_transformer.tasks.text_task import OneLanguage


def attend_of(model: str) -> Callable[..., dict] | None:
    """The signature "attend" of such a model.

    Args:
        model: a run's folder, a checkpoint in one, or a SavedModel.

    Returns:
        A function of `text`, strings (B,), to "pieces" (B, T) and weights (B, N, h, T, T) by the
        name of their stack. None for a model with two stacks, and for an export that has no such
        signature.
    """
    path = ModelPath.of(model)
    if path.version:
        return saved_functions(path).get("attend")
    name = task_of(path.describe())
    if name not in TASKS or not issubclass(task_class(name), OneLanguage):
        return None
    module = task_class(name).reload(path.run, {"precision": "float32"})
    return LiveFunctions(module)["attend"]
