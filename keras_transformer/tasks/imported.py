"""The export and the run's folder of a model that somebody else trained (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding"; Dosovitskiy et al.
2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale").
"""

import pathlib
from collections.abc import Mapping
from types import MappingProxyType

from keras_transformer import models
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.decoding.remembered_options import remembered
from keras_transformer.imports import bert, bert_text, gpt2, t5, vit
from keras_transformer.imports.hugging_face import PretrainedFolder, assign
from keras_transformer.imports.marian import MarianFolder, is_marian
from keras_transformer.imports.opennmt_tf import OpenNMTFolder
from keras_transformer.imports.opennmt_tf_files import is_opennmt_tf
from keras_transformer.inference.language_labels import labels_of
from keras_transformer.inference.picture_classifier import TASK
from keras_transformer.inference.text_encoder_module import TextEncoderModule
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.tasks import IMPORTED_ALONE, task_class
from keras_transformer.tasks.labelling.module import LABELS_FILE, LabelModule, TagModule
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.masking.module import MaskedTextModule
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.training.checkpoint import WEIGHTS, write_archive
from pipelines.whole_files import write_json

# Kinds of translators' folders, and the function that recognizes each.
TRANSLATORS = {MarianFolder: is_marian, OpenNMTFolder: is_opennmt_tf}


def opened(folder: str) -> PretrainedFolder | MarianFolder | OpenNMTFolder:
    """Open and check the folder of a pretrained model."""
    kinds = [kind for kind, recognizes in TRANSLATORS.items() if recognizes(folder)]
    if kinds == [MarianFolder] and RunFolder(folder).description.exists():
        raise ValueError(f"{folder} is a run of our own, which needs no import. Use it as it is.")
    return (kinds or [PretrainedFolder])[0](folder)


def module_of(
    folder: PretrainedFolder | MarianFolder | OpenNMTFolder,
    languages: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ServedModule]:
    """Return the name of a model's task, and the module that it is exported as. `languages` are the
    default source_language and target_language of a multilingual model.
    """
    if isinstance(folder, tuple(TRANSLATORS)):
        vocabulary = folder.vocabulary()
        options = DecodingOptions(**folder.decoding(), **languages)
        return "translation", TranslationModule(folder.model(), vocabulary, options)
    if hasattr(folder.family, "decoding"):
        return "translation", _translator(folder, languages)
    if languages:
        raise ValueError(
            f"{' and '.join(languages)} are for a model of many languages. Received: "
            f"{folder.path}, a {folder.family.MODEL_TYPE}. Leave them out."
        )
    kinds = {bert: _of_text, gpt2: _of_prompts, t5: _of_text_to_text, vit: _of_pictures}
    return kinds[folder.family](folder)


def _translator(folder, languages):
    # All files are read before the model is built, so that their errors come early.
    vocabulary = folder.family.vocabulary(folder)
    options = DecodingOptions(**folder.family.decoding(folder, languages))
    labels_of(vocabulary, options)
    model = folder.model()
    folder.family.finish(folder, model)
    return TranslationModule(model, vocabulary, options)


def _of_pictures(folder):
    return TASK, task_class(TASK).module_class(folder.model(), folder.config.labels())


def _of_prompts(folder):
    pieces = gpt2.read_pieces(folder.files, folder.config)
    vocabulary = pieces.vocabulary(folder.config.vocab_size)
    sizes, arrays = gpt2.of_run(*folder.arrays(), pieces.pieces.index(gpt2.END))
    model = models.LanguageModel(sizes)
    assign(model, arrays, folder.path)
    return "language_modelling", GenerationModule(model, vocabulary)


def _of_text_to_text(folder):
    vocabulary = t5.vocabulary(folder.files, folder.config)
    options = DecodingOptions(beam_size=1, min_length="1")
    return "translation", TranslationModule(folder.model(), vocabulary, options)


def _of_text(folder):
    # All files are read before the model is built, so that their errors come early.
    vocabulary = bert_text.load_vocabulary(folder.files, folder.config.vocab_size)
    if not bert.HEADS_OF[folder.config.our_class]:
        folder.config = bert.for_vectors(folder.files, folder.config)
    model = folder.model(vocabulary.size)
    labels = folder.config.labels()
    if isinstance(model, models.TokenClassifier):
        return "tagging", TagModule(model, vocabulary, labels)
    if isinstance(model, models.MaskedLanguageModel):
        return "masking", MaskedTextModule(model, vocabulary)
    if isinstance(model, models.TextClassifier):
        return "classification", LabelModule(model, vocabulary, labels)
    return IMPORTED_ALONE, TextEncoderModule(model, vocabulary)


def description(task: str, module: ServedModule, origin: str) -> dict:
    """Return the contents of the run's `model.json`."""
    facts = module.facts()
    if "decoding" in facts:
        facts["decoding"] = remembered(module.options)
    return {
        "task": task,
        "hyperparameters": module.hyperparameters.as_dict(),
        **facts,
        "imported": {"from": pathlib.Path(origin).resolve().name},
    }


def write_run(path: pathlib.Path, description: Mapping, module: ServedModule) -> None:
    """Write a run's folder at a path that does not exist or is an empty folder."""
    folder = RunFolder(path)
    folder.describe(description)
    module.write_files(path)
    if labels := module.facts().get("labels"):
        write_json(path / LABELS_FILE, labels["names"])
    variables = module.variables_by_path().items()
    # NumPy copies one array after the other.
    write_archive(folder.averaged, {WEIGHTS + name: variable for name, variable in variables})
