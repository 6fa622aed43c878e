"""A BERT or a ViT that somebody else trained, as a run's folder and a SavedModel: `python -m
keras_transformer.import_model --from=FOLDER --model_dir=runs/bert` (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding"; Dosovitskiy et al.
2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale").

The folder is in Hugging Face's layout: config.json, *.safetensors, and of a BERT vocab.txt or
tokenizer.json. The run's folder is what `--init_from` fine-tunes. A BERT's SavedModel gives
sentence vectors, and the hidden words, the labels or the tags of words of a model that has a head
for them; a ViT's gives classes of pictures.
"""

import pathlib

from keras_transformer import flags

GROUPS = ("import", "model_dir", "export", "version")


def main(FLAGS):
    from keras_transformer.artifacts import saved_model
    from keras_transformer.imports import hugging_face
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.tasks.release import export_dir_of

    origin = FLAGS["from"].value
    if not origin:
        raise ValueError("--from is missing: a folder with config.json and *.safetensors.")
    run = RunFolder(flags.required_model_dir(FLAGS))
    if run.path.exists():
        raise FileExistsError(f"{run.path} exists. Name another --model_dir, or delete it.")
    config = hugging_face.read_config(pathlib.Path(origin))
    kinds = {"bert": _of_text, "vit": _of_pictures}
    if config["model_type"] not in kinds:
        raise ValueError(
            f"`model_type` of {origin} must be {' or '.join(kinds)}: we cannot cut the text of "
            f"others into pieces. Received: {config['model_type']}. `imports.hugging_face.load` "
            "makes a model of it that takes ids."
        )
    export_dir = export_dir_of(run, FLAGS.export_dir)
    # Before the run is written, which a second try would find there.
    saved_model.new_version(export_dir, FLAGS.version)
    task, artifact = kinds[config["model_type"]](origin, config)
    description = _description(task, artifact, origin)
    _write(run, description, artifact)
    path = saved_model.export(artifact, export_dir, description, version=FLAGS.version)
    print(f"{task} in {run.path}, exported to {path}")


def _of_pictures(origin, config):
    """The task of a ViT, and what is exported of it."""
    from keras_transformer.artifacts.picture_artifact import PictureArtifact
    from keras_transformer.imports import hugging_face, vit
    from keras_transformer.translator.picture_classifier import TASK
    from keras_transformer.translator.picture_module import PictureModule

    return TASK, PictureArtifact(PictureModule(hugging_face.load(origin), vit.classes(config)))


def _of_text(origin, config):
    """The task that a BERT is of, and what is exported of it."""
    from keras_transformer import models
    from keras_transformer.artifacts import text_encoder_artifact as artifacts
    from keras_transformer.imports import bert, bert_vocabulary, hugging_face
    from keras_transformer.translator import text_encoder_module as modules
    from keras_transformer.translator.tag_module import TagModule

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
    return "sentence_vectors", artifacts.TextEncoderArtifact(module)


def _description(task, artifact, origin):
    module = artifact.module
    return {
        "task": task,
        "hyperparameters": module.hyperparameters.as_dict(),
        **artifact.facts(),
        "imported": {"from": pathlib.Path(origin).resolve().name},
    }


def _write(run, description, artifact):
    """Write the run's folder, whole or not at all."""
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.training.checkpoint import WEIGHTS, write_archive
    from pipelines.whole_files import whole_folder, write_json

    module = artifact.module
    with whole_folder(run.path) as temporary:
        temporary.mkdir()
        folder = RunFolder(temporary)
        folder.describe(description)
        artifact.write_files(temporary)
        if labels := artifact.facts().get("labels"):
            write_json(temporary / "labels.json", labels["names"])
        arrays = {WEIGHTS + path: array for path, array in module.arrays().items()}
        write_archive(folder.averaged, arrays)


if __name__ == "__main__":
    flags.run(main, GROUPS)
