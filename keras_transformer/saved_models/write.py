"""From a trained model to a SavedModel that TF Serving takes, whatever its task is."""

import pathlib
from collections.abc import Mapping, Sequence

import tensorflow as tf

from keras_transformer.saved_models import card as model_card
from keras_transformer.saved_models import golden, self_check, tf_serving_files
from keras_transformer.saved_models.artifact import Artifact
from keras_transformer.saved_models.versions import taken_numbers
from pipelines.whole_files import whole_folder, write_json


def export(
    artifact: Artifact,
    folder: pathlib.Path,
    description: Mapping,
    examples: Sequence = (),
    version: int | None = None,
) -> pathlib.Path:
    """Write a version of a model, whole or not at all, and not if it differs from the live model.

    <version>/saved_model.pb, variables/              the graph with its signatures
    <version>/README.md, model.json                   what it is
    <version>/assets.extra/golden.jsonl               examples and what comes out for them
    <version>/assets.extra/tf_serving_warmup_requests, batching_parameters.txt
    <version>/assets.extra/...                        what the artifact adds: a vocabulary, say

    Args:
        artifact: what is exported.
        folder: `saved_models/<name>`, where TF Serving looks for numbered versions.
        description: what the model is: the run's `model.json`, with `scores`.
        examples: of the test set, to take golden ones from.
        version: its number; by default the next free one.

    Returns:
        The path of the new version, `<folder>/<version>`.

    Raises:
        FileExistsError: if there is such a version.
        ValueError: see `self_check.check`.
    """
    final = new_version(folder, version)
    with whole_folder(final) as temporary:
        _write(artifact, temporary, final.parent.name, description, examples)
        self_check.check(temporary)
    return final


def new_version(folder: pathlib.Path, version: int | None = None) -> pathlib.Path:
    """The path of a version that is not there yet.

    Args:
        folder, version: as in `export`.

    Raises:
        FileExistsError: if there is such a version.
    """
    folder = pathlib.Path(folder).resolve()
    taken = taken_numbers(folder)
    number = 1 + max(taken, default=0) if version is None else version
    if number in taken:
        raise FileExistsError(
            f"{taken[number]} exists: a served version is never changed. Leave --version out "
            "for the next free one."
        )
    return folder / str(number)


def _write(artifact, path, name, description, examples):
    functions = artifact.signatures()
    tf.saved_model.save(artifact.module, str(path), signatures=functions)
    card = model_card.card(artifact, description, functions)
    write_json(path / "model.json", card)
    (path / "README.md").write_text(model_card.as_text(artifact, card), encoding="utf-8")
    extra = path / "assets.extra"
    extra.mkdir()
    artifact.write_files(extra)
    answered = golden.answered(artifact, artifact.golden_inputs(examples))
    golden.write(extra / "golden.jsonl", answered)
    tf_serving_files.write_warmup_requests(
        extra / "tf_serving_warmup_requests", functions, answered, name
    )
    tf_serving_files.write_batching_parameters(extra / "batching_parameters.txt")
