"""From a trained model to a SavedModel that TF Serving takes: strings in, strings out."""

import pathlib

import tensorflow as tf

from keras_transformer.artifacts import golden, model_card, self_check, tf_serving_files
from keras_transformer.artifacts.signatures import served
from keras_transformer.runs.versions import next_version
from pipelines.whole_files import whole_folder, write_json


def export(module, folder, description, examples=(), version=None):
    """Write a version of a model, whole or not at all, and not if it differs from the model.

    <version>/saved_model.pb, variables/              the graph with the signatures of `served`, tokenizer inside
    <version>/README.md, model.json                   what it is
    <version>/assets.extra/golden.jsonl               sentences and their translations
    <version>/assets.extra/vocabulary.model           with it, another model can be trained from this one
    <version>/assets.extra/tf_serving_warmup_requests, batching_parameters.txt

    Args:
        module: a `TranslationModule`.
        folder: `saved_models/<name>`, where TF Serving looks for numbered versions.
        description: what the model is: the run's `model.json`, with `scores`.
        examples: sentences to take golden ones from.
        version: its number; by default the next free one.

    Returns:
        The path of the new version, `<folder>/<version>`.

    Raises:
        FileExistsError: if there is such a version.
        ValueError: see `self_check.check`.
    """
    folder = pathlib.Path(folder).resolve()
    version = next_version(folder) if version is None else version
    final = folder / str(version)
    if final.exists():
        raise FileExistsError(
            f"{final} exists: a served version is never changed. Leave --version out for the "
            "next free one."
        )
    with whole_folder(final) as temporary:
        _write(module, temporary, folder.name, description, examples)
        self_check.check(temporary)
    return final


def _write(module, path, name, description, examples):
    functions = served(module)
    tf.saved_model.save(module, str(path), signatures=functions)
    card = model_card.card(module, description, functions)
    write_json(path / "model.json", card)
    (path / "README.md").write_text(model_card.as_text(card), encoding="utf-8")
    extra = path / "assets.extra"
    extra.mkdir()
    module.vocabulary.save(extra / "vocabulary.model")
    texts = golden.golden_texts(module.vocabulary.pieces, examples)
    translations = [
        module.translate(tf.constant([text]))["translation"].numpy()[0] for text in texts
    ]
    golden.write(extra / "golden.jsonl", texts, translations)
    tf_serving_files.write_warmup_requests(
        extra / "tf_serving_warmup_requests", functions, texts, name
    )
    tf_serving_files.write_batching_parameters(extra / "batching_parameters.txt")
