"""What makes an export and a run's folder of a model that somebody else trained (Devlin et al.
2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding";
Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition at
Scale").
"""

import pathlib
from collections.abc import Mapping

from keras_transformer import models
from keras_transformer.artifacts import text_encoder_artifact as artifacts
from keras_transformer.artifacts.artifact import Artifact
from keras_transformer.artifacts.picture_artifact import PictureArtifact
from keras_transformer.imports import bert, bert_vocabulary, hugging_face, vit
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks import IMPORTED_ALONE
from keras_transformer.tasks.labelling import LABELS_FILE
from keras_transformer.training.checkpoint import WEIGHTS, write_archive
from keras_transformer.translator import text_encoder_module as modules
from keras_transformer.translator.picture_classifier import TASK
from keras_transformer.translator.picture_module import PictureModule
from keras_transformer.translator.tag_module import TagModule
from pipelines.whole_files import whole_folder, write_json


def maker(origin: str, config: Mapping):
    """What makes a task's artifact of a folder in Hugging Face's layout: `of_text` or
    `of_pictures`.

    Args:
        origin: the folder.
        config: its config.json, as `hugging_face.read_config` gives it.

    Raises:
        ValueError: for a family that no task is for.
    """
    kinds = {bert.MODEL_TYPE: of_text, vit.MODEL_TYPE: of_pictures}
    if config["model_type"] not in kinds:
        raise ValueError(
            f"`model_type` of {origin} must be {' or '.join(kinds)}: we cannot cut the text of "
            f"others into pieces. Received: {config['model_type']}. `imports.hugging_face.load` "
            "makes a model of it that takes ids."
        )
    return kinds[config["model_type"]]


def of_pictures(origin: str, config: Mapping) -> tuple[str, Artifact]:
    """The task of a ViT, and what is exported of it."""
    return TASK, PictureArtifact(PictureModule(hugging_face.load(origin), vit.classes(config)))


def of_text(origin: str, config: Mapping) -> tuple[str, Artifact]:
    """The name of the task of a BERT, and the artifact that it is exported as."""
    model = hugging_face.load(origin)
    vocabulary = bert_vocabulary.load(origin)
    labels = bert.labels(config)
    if isinstance(model, models.TokenClassifier):
        return "tagging", artifacts.TagArtifact(TagModule(model, vocabulary, labels))
    if isinstance(model, models.MaskedLanguageModel):
        module = modules.MaskedTextModule(model, vocabulary)
        return "masking", artifacts.MaskedTextArtifact(module)
    if isinstance(model, models.TextClassifier):
        module = modules.LabelModule(model, vocabulary, labels)
        return "classification", artifacts.LabelArtifact(module)
    hugging_face.refuse_another_pooling(origin)
    module = modules.TextEncoderModule(model, vocabulary)
    return IMPORTED_ALONE, artifacts.TextEncoderArtifact(module)


def description(task: str, artifact: Artifact, origin: str) -> dict:
    """What the run's `model.json` says."""
    return {
        "task": task,
        "hyperparameters": artifact.module.hyperparameters.as_dict(),
        **artifact.facts(),
        "imported": {"from": pathlib.Path(origin).resolve().name},
    }


def write_run(run: RunFolder, description: Mapping, artifact: Artifact) -> None:
    """Write the run's folder, whole or not at all."""
    with whole_folder(run.path) as temporary:
        temporary.mkdir()
        folder = RunFolder(temporary)
        folder.describe(description)
        artifact.write_files(temporary)
        if labels := artifact.facts().get("labels"):
            write_json(temporary / LABELS_FILE, labels["names"])
        arrays = {WEIGHTS + path: array for path, array in artifact.module.arrays().items()}
        write_archive(folder.averaged, arrays)
