"""Any translation set of TensorFlow Datasets: the paper's WMT 2014 (Vaswani et al. 2017, section
5.1), or a `tfds.TranslateFolder`.
"""

import collections
import logging
import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.text_files import LONGEST_LINE

TRANSLATE_FOLDER = "translate_folder"
INSTALL = "Install it: pip install keras-transformer-nmt[tfds]."
EXAMPLES_A_READ = 1024

logger = logging.getLogger(__name__)


def load(
    source_language: str,
    target_language: str,
    *,
    dataset: str | None,
    data_dir: str | os.PathLike | None = None,
    splits: Sequence[str] = ("train", "validation", "test"),
) -> Corpus:
    """Loads three splits of a set into memory. All are looked for before the first is read.

    A pair with an empty side, or with a side over 100,000 characters, is dropped and counted; a
    line break inside a sentence becomes a space.

    Args:
        source_language: a language of the set ("de"); either direction.
        target_language: another.
        dataset: name in TFDS' catalogue with its configuration ("wmt14_translate/de-en"), or
            "translate_folder".
        data_dir: TFDS' folder of prepared sets; None: `$TFDS_DATA_DIR`, or `~/tensorflow_datasets`.
            What is not prepared there is downloaded. Of "translate_folder": the folder with
            `<language>.<split>.txt`, one sentence a line.
        splits: training, validation and test split, slices too ("train[:1%]", "train[5000:]",
            "validation+test").

    Returns:
        The `Corpus`, its three splits non-empty.

    Raises:
        ValueError: TFDS is not installed; no such set, language or split; a folder of text that
            cannot be used; no pair left.
        OSError: a set that cannot be downloaded, prepared or read.
    """
    if len(splits) != 3 or not all(splits):
        raise ValueError(
            "`splits` must name three splits: training, validation, test. Received: "
            f"{','.join(splits)!r}. Try train,validation,test."
        )
    builder = _builder(dataset, data_dir, source_language, target_language)
    examples = [
        _examples(builder, dataset, (source_language, target_language), split) for split in splits
    ]
    dropped: collections.Counter[str] = collections.Counter()
    texts = [
        ParallelText.from_pairs(_pairs(one, dropped, f"Split {split!r} of {dataset}"))
        for split, one in zip(splits, examples, strict=True)
    ]
    return Corpus("tfds", source_language, target_language, *texts, dropped=dict(dropped))


def stream(
    source_language: str,
    target_language: str,
    *,
    dataset: str | None,
    data_dir: str | os.PathLike | None = None,
    split: str = "train",
    part: int = 0,
    parts: int = 1,
    dropped: collections.Counter[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Reads one of several even parts of a split, never more of it in memory than a few thousand
    pairs.

    Together the parts give each pair of the split once. (`translate_folder` is the exception: TFDS
    reads such a folder whole.)

    Args:
        source_language: as in `load`.
        target_language: as in `load`.
        dataset: as in `load`.
        data_dir: as in `load`.
        split: name of the split, or a slice of it.
        part: which part, from 0 to `parts` - 1.
        parts: how many parts the split is cut into, at least 1.
        dropped: counter to which the pairs left out are added, reason -> number, as they are met.

    Returns:
        Iterator over (source, target), the usable pairs as in `load`; a part may have none, a whole
        split may not.

    Raises:
        ValueError: as `load`, or a `part` that there is not; at once, but for a whole split without
            a usable pair, which its end shows.
        OSError: as `load`; at once, but for a set that is damaged.
    """
    if not 0 <= part < parts:
        raise ValueError(
            f"`part` must be from 0 to `parts` - 1. Received: part={part}, parts={parts}. Count "
            "parts from 0."
        )
    builder = _builder(dataset, data_dir, source_language, target_language)
    examples = _examples(builder, dataset, (source_language, target_language), split, part, parts)
    return _pairs(
        examples,
        collections.Counter() if dropped is None else dropped,
        f"Split {split!r} of {dataset}" if parts == 1 else None,
    )


def _tensorflow_datasets():
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise ValueError(
            f"Corpus tfds needs the package tensorflow-datasets: {error}. {INSTALL}"
        ) from error
    return tensorflow_datasets


def _builder(dataset: str | None, data_dir: str | os.PathLike | None, *languages: str):
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
    tfds = _tensorflow_datasets()
    if dataset == TRANSLATE_FOLDER:
        builder = _open_folder(data_dir)
    else:
        try:
            builder = tfds.builder(dataset, data_dir=data_dir and os.path.expanduser(data_dir))
        except Exception as error:  # A wrong name, configuration or version: each is another type.
            raise ValueError(
                "`dataset` must name a set of TFDS, such as wmt14_translate/de-en. Received: "
                f"{dataset!r} ({_one_line(error)}). "
                "See https://www.tensorflow.org/datasets/catalog."
            ) from error
    # Before anything is downloaded.
    known = sorted(
        name
        for name, feature in dict(builder.info.features).items()
        if isinstance(feature, tfds.features.Text)
    )
    for argument, language in zip(("source_language", "target_language"), languages, strict=True):
        if language not in known:
            raise ValueError(
                f"`{argument}` must be a language of {dataset}. Received: {language!r}. It has: "
                f"{', '.join(known) or 'none'}. "
                "Choose two of them, or another set."
            )
    if dataset != TRANSLATE_FOLDER and not builder.is_prepared():
        _prepare(builder, dataset)
    return builder


def _prepare(builder, dataset: str) -> None:
    place = builder.data_dir_root
    logger.info("%s is not prepared in %s: TFDS downloads it", dataset, place)
    try:
        builder.download_and_prepare()
    except (
        ImportError
    ) as error:  # TFDS 4.9.10 needs importlib_resources here, and does not require it.
        raise ValueError(
            f"{dataset} is not prepared in {place}, and TFDS cannot prepare it: {error}. {INSTALL}"
        ) from error
    # Names that do not resolve, refused connections, check sums, files to be fetched by hand, bad
    # archives.
    except Exception as error:
        raise OSError(
            f"{dataset} is not prepared in {place}, and TFDS could not download or prepare it: "
            f"{_one_line(error)}. "
            "Prepare it where there is a network, and pass its folder with --data_dir."
        ) from error


def _open_folder(data_dir: str | os.PathLike | None):
    if not data_dir:
        raise ValueError(
            f"Set {TRANSLATE_FOLDER} needs `data_dir`, the folder with <language>.<split>.txt. "
            f"Received: {data_dir!r}. "
            "Pass --data_dir=FOLDER."
        )
    folder = Path(data_dir).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`data_dir` must be an existing folder. Received: {folder}. Check the path."
        )
    if strangers := sorted(
        path.name for path in folder.iterdir() if path.name.count(".") != 2 or path.is_dir()
    ):
        raise ValueError(
            f"{folder} must hold nothing but files <language>.<split>.txt. Received: "
            f"{', '.join(strangers[:10])}. Move them away."
        )
    try:
        builder = _tensorflow_datasets().TranslateFolder(root_dir=os.fspath(folder))
    except ValueError as error:
        raise ValueError(
            f"{folder} cannot be read as a TranslateFolder: {_one_line(error)}. "
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


def _examples(
    builder, dataset: str, languages: Sequence[str], split: str, part: int = 0, parts: int = 1
) -> list:
    """One even part of a split, as datasets of (source, target) bytes. Nothing is read yet."""
    tfds = _tensorflow_datasets()
    splits = builder.info.splits
    try:
        instructions = tfds.even_splits(split, parts)[part].to_absolute(splits)
    except (ValueError, NotImplementedError, AssertionError) as error:
        raise ValueError(
            f"`split` must be one of {dataset}, or a slice such as train[:1%]. Received: "
            f"{split!r} ({_one_line(error)}). "
            f"It has: {', '.join(splits) or 'none'}."
        ) from error
    found = []
    for one in instructions:
        first = one.from_ or 0
        end = splits[one.splitname].num_examples if one.to is None else one.to
        if first == end:  # TFDS refuses to read nothing.
            continue
        if isinstance(builder, tfds.TranslateFolder):  # It knows no slices.
            examples = builder.as_dataset(split=one.splitname).skip(first).take(end - first)
        else:
            slice_ = tfds.core.ReadInstruction(one.splitname, from_=first, to=end, unit="abs")
            examples = builder.as_dataset(
                split=slice_, read_config=tfds.ReadConfig(try_autocache=False)
            )
        if missing := [language for language in languages if language not in examples.element_spec]:
            held = ", ".join(sorted(examples.element_spec))
            raise ValueError(
                f"Split {one.splitname!r} of {dataset} has no {missing[0]}. It has: {held}. Add "
                "the file, or name another split."
            )
        found.append(
            examples.map(lambda example: tuple(example[language] for language in languages))
        )
    return found


def _pairs(
    examples: list, dropped: collections.Counter[str], whole: str | None
) -> Iterator[tuple[str, str]]:
    """The usable pairs. `whole` is what an error calls a split that must have some; None: a part,
    that need not.
    """
    usable = 0
    for pair in _read(examples):
        source, target = (" ".join(side.decode("utf-8").splitlines()).strip() for side in pair)
        if not source or not target:
            dropped["empty"] += 1
        elif max(len(source), len(target)) > LONGEST_LINE:
            dropped["huge line"] += 1
        else:
            usable += 1
            yield source, target
    if whole and not usable:
        raise ValueError(
            f"{whole} has no usable pair: it is empty, or all have an empty side or a huge line. "
            "Name another split."
        )


def _read(examples: list) -> Iterator[tuple[bytes, bytes]]:
    import tensorflow as tf

    try:
        for one in examples:
            for sources, targets in one.batch(EXAMPLES_A_READ).prefetch(1).as_numpy_iterator():
                yield from zip(sources, targets, strict=True)
    except tf.errors.OpError as error:
        raise OSError(
            f"A set of TFDS is damaged: {_one_line(error)}. Delete its folder, to prepare it again."
        ) from error


def _one_line(error: Exception) -> str:
    return textwrap.shorten(f"{type(error).__name__}: {error}", 300, placeholder=" ...").rstrip(".")
