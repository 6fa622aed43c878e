"""Translation sets of TensorFlow Datasets: the paper's WMT 2014 (Vaswani et al. 2017, section 5.1),
or a `tfds.TranslateFolder`. The package is imported late: it takes seconds.
"""

import functools
import logging
import os
import re
import textwrap
from collections.abc import Iterator, Sequence

from pipelines.corpora.options import Folder, Streamed
from pipelines.corpora.parallel_text import objection
from pipelines.line_files import existing_folder
from pipelines.options import option

EXAMPLES_A_READ = 1024
TRANSLATE_FOLDER = "translate_folder"

logger = logging.getLogger(__name__)


class Tfds(Streamed, Folder, name="tfds"):
    """A translation set of TensorFlow Datasets, in either direction.

    A pair with an empty side, or with a side over 100,000 characters, is dropped and counted; a
    line break inside a sentence becomes a space. A set that is not in `data_dir` is downloaded. The
    set "translate_folder" is a `data_dir` of files `<language>.<split>.txt`, one sentence a line,
    which TFDS reads whole.
    """

    dataset: str | None = option(
        None,
        "Name of a TensorFlow Datasets data set, such as wmt14_translate/de-en, for --corpus=tfds.",
    )
    splits: tuple[str, ...] = option(
        ("train", "validation", "test"),
        "Splits of the data set to train, validate and test on, for --corpus=tfds.",
    )

    def __post_init__(self):
        super().__post_init__()
        are_names = all(isinstance(split, str) and split for split in self.splits)
        if len(self.splits) != 3 or not are_names:
            raise ValueError(
                "`splits` must name three splits: training, validation, test. Received: "
                f"{','.join(map(str, self.splits))!r}. Try train,validation,test."
            )

    @functools.cached_property
    def _builder(self):
        dataset = self.require("dataset", "a translation set such as wmt14_translate/de-en")
        return builder_of(dataset, self.data_dir, *self.two_languages())

    def rows(self, split, dropped, part=0, parts=1):
        split = self.splits[split]
        languages = self.two_languages()
        examples = _examples(self._builder, self.dataset, languages, split, part, parts)
        name = f"split {split!r} of {self.dataset}"
        return _pairs(examples, dropped, name, part, parts), name, "example"


def _examples(builder, dataset, languages, split, part, parts):
    """Open one even part of a split, as datasets of (source, target) bytes, read lazily."""
    import tensorflow_datasets as tfds

    splits = builder.info.splits
    try:
        instructions = tfds.even_splits(split, parts)[part].to_absolute(splits)
    except (ValueError, NotImplementedError, AssertionError) as error:
        raise ValueError(
            f"`split` must be one of {dataset}, or a slice such as train[:1%]. Received: {split!r} "
            f"({one_line(error)}). It has: {', '.join(splits) or 'none'}."
        ) from error
    datasets = []
    for instruction in instructions:
        name = instruction.splitname
        first = instruction.from_ or 0
        end = splits[name].num_examples if instruction.to is None else instruction.to
        if first == end:  # TFDS refuses empty reads.
            continue
        if isinstance(builder, tfds.TranslateFolder):  # It does not support slices.
            examples = builder.as_dataset(split=name).skip(first).take(end - first)
        else:
            slice_ = tfds.core.ReadInstruction(name, from_=first, to=end, unit="abs")
            uncached = tfds.ReadConfig(try_autocache=False)
            examples = builder.as_dataset(split=slice_, read_config=uncached)
        if missing := [language for language in languages if language not in examples.element_spec]:
            raise ValueError(
                f"Split {name!r} of {dataset} has no {missing[0]}. It has: "
                f"{', '.join(sorted(examples.element_spec))}. Add the file, or name another split."
            )
        datasets.append(
            examples.map(lambda example: tuple(example[language] for language in languages))
        )
    return datasets


def _pairs(examples, dropped, name, part, parts):
    """Yield (number, source, target) of the usable pairs of a part of a split."""
    usable = 0
    place = name if parts == 1 else f"part {part + 1} of {parts} of {name}"
    for number, pair in enumerate(_read(examples), 1):
        # translate_folder keeps a file's byte order mark.
        texts = (side.decode("utf-8").removeprefix("\ufeff") for side in pair)
        source, target = (" ".join(text.splitlines()).strip() for text in texts)
        if reason := objection(source, target):
            dropped.leave_out(reason, f"{place}, example {number}")
        else:
            usable += 1
            yield number, source, target
    if parts == 1 and not usable:
        raise ValueError(
            f"{name.replace('split', 'Split', 1)} has no usable pair: it is empty, or all have an "
            "empty side or a huge line. Name another split."
        )


def _read(datasets: list) -> Iterator[tuple[bytes, bytes]]:
    import tensorflow as tf

    try:
        for dataset in datasets:
            batches = dataset.batch(EXAMPLES_A_READ).prefetch(1)
            for sources, targets in batches.as_numpy_iterator():
                yield from zip(sources, targets, strict=True)
    except tf.errors.OpError as error:
        raise OSError(
            f"A set of TFDS is damaged: {one_line(error)}. Delete its folder, to prepare it again."
        ) from error


def builder_of(dataset: str, data_dir: str | None, *languages: str):
    """Return the builder of a set; check its languages, and prepare it if it is not prepared."""
    is_folder = dataset == TRANSLATE_FOLDER
    builder = _open_folder(data_dir) if is_folder else _in_catalogue(dataset, data_dir)
    _check_languages(builder, dataset, languages)  # Before anything is downloaded.
    if not is_folder and not builder.is_prepared():
        _prepare(builder, dataset)
    return builder


def package():
    """Import the package, and patch it: each builder would leave a temporary folder for files from
    a bucket that the package no longer reads.
    """
    import tensorflow_datasets as tfds

    tfds.core.DatasetInfo.initialize_from_bucket = lambda info: None
    return tfds


def _in_catalogue(dataset: str, data_dir: str | os.PathLike | None):
    """Return the builder of a set in TFDS' catalogue."""
    try:
        return package().builder(dataset, data_dir=data_dir and os.path.expanduser(data_dir))
    except Exception as error:  # Wrong names, configurations and versions have different types.
        raise ValueError(
            "`dataset` must name a set of TFDS, such as wmt14_translate/de-en. Received: "
            f"{dataset!r} ({one_line(error)}). See https://www.tensorflow.org/datasets/catalog."
        ) from error


def _check_languages(builder, dataset: str, languages: Sequence[str]) -> None:
    text = package().features.Text
    features = dict(builder.info.features)
    available = sorted(name for name, feature in features.items() if isinstance(feature, text))
    for argument, language in zip(("source_language", "target_language"), languages, strict=True):
        if language not in available:
            raise ValueError(
                f"`{argument}` must be a language of {dataset}. Received: {language!r}. It has: "
                f"{', '.join(available) or 'none'}. Choose two of them, or another set."
            )


def _prepare(builder, dataset: str) -> None:
    from tensorflow_datasets.core.download import downloader

    # Seven retries take half a minute; the default of ten takes nearly four.
    downloader.MAX_RETRIES = 7
    place = builder.data_dir_root
    logger.info("%s is not prepared in %s: TFDS downloads it", dataset, place)
    try:
        builder.download_and_prepare()
    except Exception as error:  # No network, check sums, files to be fetched by hand, bad archives.
        raise OSError(
            f"{dataset} is not prepared in {place}, and TFDS could not download or prepare it: "
            f"{one_line(error)}. "
            "Prepare it where there is a network, and pass its folder with --data_dir."
        ) from error


def _open_folder(data_dir: str | os.PathLike | None):
    if not data_dir:
        raise ValueError(
            f"Set {TRANSLATE_FOLDER} needs `data_dir`, the folder with <language>.<split>.txt. "
            f"Received: {data_dir!r}. Pass --data_dir=FOLDER."
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
    """Return the type and text of an error in one line, without TensorFlow's node names."""
    text = re.sub(r"\{\{.*?\}\} ?", "", str(error))
    return textwrap.shorten(f"{type(error).__name__}: {text}", 300, placeholder=" ...").rstrip(".")
