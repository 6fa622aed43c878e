"""Sets of TensorFlow Datasets: found, prepared if they are not, and checked for two languages.

The package takes seconds to import, and other corpora do without it.
"""

import logging
import os
import re
import textwrap
from collections.abc import Sequence

from pipelines.corpora.line_files import existing_folder

TRANSLATE_FOLDER = "translate_folder"

logger = logging.getLogger(__name__)


def builder_of(dataset: str | None, data_dir: str | os.PathLike | None, *languages: str):
    """The builder of a set that is prepared and has both languages."""
    if not dataset:
        raise ValueError(
            f"Corpus tfds needs `dataset`, the name of a translation set. Received: {dataset!r}. "
            "Try --dataset=wmt14_translate/de-en."
        )
    if languages[0] == languages[1]:
        raise ValueError(
            f"`source_language` and `target_language` must differ. Received: {languages[0]!r} "
            "twice. Name two languages."
        )
    is_folder = dataset == TRANSLATE_FOLDER
    builder = _open_folder(data_dir) if is_folder else _in_catalogue(dataset, data_dir)
    _check_languages(builder, dataset, languages)  # Before anything is downloaded.
    if not is_folder and not builder.is_prepared():
        _prepare(builder, dataset)
    return builder


def package():
    """The package, without the temporary folder that each of its builders would leave: it is for
    files from a bucket that the package no longer reads.
    """
    import tensorflow_datasets as tfds

    tfds.core.DatasetInfo.initialize_from_bucket = lambda info: None
    return tfds


def _in_catalogue(dataset: str, data_dir: str | os.PathLike | None):
    """The builder of a set that TFDS knows."""
    try:
        return package().builder(dataset, data_dir=data_dir and os.path.expanduser(data_dir))
    except Exception as error:  # A wrong name, configuration or version: each is another type.
        raise ValueError(
            "`dataset` must name a set of TFDS, such as wmt14_translate/de-en. Received: "
            f"{dataset!r} ({one_line(error)}). "
            "See https://www.tensorflow.org/datasets/catalog."
        ) from error


def _check_languages(builder, dataset: str, languages: Sequence[str]) -> None:
    text = package().features.Text
    known = sorted(
        name for name, feature in dict(builder.info.features).items() if isinstance(feature, text)
    )
    for argument, language in zip(("source_language", "target_language"), languages, strict=True):
        if language not in known:
            raise ValueError(
                f"`{argument}` must be a language of {dataset}. Received: {language!r}. It has: "
                f"{', '.join(known) or 'none'}. "
                "Choose two of them, or another set."
            )


def _prepare(builder, dataset: str) -> None:
    place = builder.data_dir_root
    logger.info("%s is not prepared in %s: TFDS downloads it", dataset, place)
    try:
        builder.download_and_prepare()
    # Names that do not resolve, refused connections, check sums, files to be fetched by hand, bad
    # archives.
    except Exception as error:
        raise OSError(
            f"{dataset} is not prepared in {place}, and TFDS could not download or prepare it: "
            f"{one_line(error)}. "
            "Prepare it where there is a network, and pass its folder with --data_dir."
        ) from error


def _open_folder(data_dir: str | os.PathLike | None):
    if not data_dir:
        raise ValueError(
            f"Set {TRANSLATE_FOLDER} needs `data_dir`, the folder with <language>.<split>.txt. "
            f"Received: {data_dir!r}. "
            "Pass --data_dir=FOLDER."
        )
    folder = existing_folder(data_dir)
    if strangers := sorted(
        path.name for path in folder.iterdir() if path.name.count(".") != 2 or path.is_dir()
    ):
        raise ValueError(
            f"{folder} must hold nothing but files <language>.<split>.txt. Received: "
            f"{', '.join(strangers[:10])}. Move them away."
        )
    try:
        builder = package().TranslateFolder(root_dir=os.fspath(folder))
    except ValueError as error:
        raise ValueError(
            f"{folder} cannot be read as a TranslateFolder: {one_line(error)}. "
            "Every file must be UTF-8 and have as many lines as the others of its split."
        ) from error
    for path in folder.iterdir():
        with open(path, "rb") as file:
            lines = sum(1 for _ in file)
            expected = builder.info.splits[path.name.split(".")[1]].num_examples
        if lines != expected:
            raise ValueError(
                f"{path} has {lines} lines, but TranslateFolder reads {expected}: it cuts at "
                "carriage return, form feed, U+0085 and U+2028 "
                "too, which shifts the pairs. Remove these, or use --corpus=text_files."
            )
    return builder


def one_line(error: Exception) -> str:
    """The type and the text of an error, in one line, without TensorFlow's names of nodes."""
    text = re.sub(r"\{\{.*?\}\} ?", "", str(error))
    return textwrap.shorten(f"{type(error).__name__}: {text}", 300, placeholder=" ...").rstrip(".")
