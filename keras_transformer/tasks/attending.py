"""The self-attention of models with one stack: language models and text encoders (figures 3 to 5 of
Vaswani et al. 2017 show a translator's).
"""

import pathlib
from collections.abc import Callable

from keras_transformer.inference.loading import saved_model
from keras_transformer.runs.folder import named_run
from keras_transformer.runs.task_name import task_of
from keras_transformer.saved_models.session import reload
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
    path = pathlib.Path(model)
    if version := saved_model(path):
        return reload(version).signatures.get("attend")
    folder = named_run(path)
    name = task_of(folder.read_description())
    if name not in TASKS or not issubclass(task_class(name), OneLanguage):
        return None
    module = task_class(name).reload(folder, {"precision": "float32"})
    return module.attend
