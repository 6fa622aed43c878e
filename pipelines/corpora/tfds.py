"""Any translation set of TensorFlow Datasets: the paper's WMT 2014 (Vaswani et al. 2017, section
5.1), or a `tfds.TranslateFolder`.
"""

import os
from collections.abc import Iterator, Sequence

from pipelines.corpora.parallel_text import Corpus, ParallelText, objection
from pipelines.corpora.tfds_builder import builder_of, one_line
from pipelines.dropped import Dropped

EXAMPLES_A_READ = 1024


def load(
    source_language: str,
    target_language: str,
    *,
    dataset: str | None,
    data_dir: str | os.PathLike | None = None,
    splits: Sequence[str] = ("train", "validation", "test"),
    strict: bool = False,
) -> Corpus:
    """Load three splits of a set into memory. All are looked for before the first is read.

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
        strict: whether a pair that would be dropped is refused.

    Returns:
        The `Corpus`, its three splits non-empty.

    Raises:
        ValueError: TFDS is not installed; no such set, language or split; a folder of text that
            cannot be used; no pair left.
        OSError: a set that cannot be downloaded, prepared or read.
    """
    check_splits(splits)
    builder = builder_of(dataset, data_dir, source_language, target_language)
    examples = [
        _examples(builder, dataset, (source_language, target_language), split) for split in splits
    ]
    dropped = Dropped(strict=strict)
    names = [f"split {split!r} of {dataset}" for split in splits]
    texts = [
        ParallelText.from_rows(_pairs(one, dropped, name), name, "example")
        for name, one in zip(names, examples, strict=True)
    ]
    return Corpus("tfds", source_language, target_language, *texts, dropped=dropped)


def check_splits(splits: Sequence[str]) -> None:
    """Refuse another number of splits than three.

    Raises:
        ValueError: saying what was received.
    """
    if len(splits) != 3 or not all(splits):
        raise ValueError(
            "`splits` must name three splits: training, validation, test. Received: "
            f"{','.join(splits)!r}. Try train,validation,test."
        )


def stream(
    source_language: str,
    target_language: str,
    *,
    dataset: str | None,
    data_dir: str | os.PathLike | None = None,
    split: str = "train",
    part: int = 0,
    parts: int = 1,
    dropped: Dropped | None = None,
) -> Iterator[tuple[str, str]]:
    """Read one of several even parts of a split, with a few thousand pairs in memory at a time.

    Together the parts give each pair of the split once. (`translate_folder` is the exception: TFDS
    reads such a folder whole.)

    Args:
        source_language: as in `load`.
        target_language: as in `load`.
        dataset: as in `load`.
        data_dir: as in `load`.
        split: name of the split, or a slice of it.
        part: which part, from 0 to `parts` - 1.
        parts: number of parts of the split, at least 1.
        dropped: counter that counts the pairs left out by reason, as they are met.

    Returns:
        Iterator over (source, target), the usable pairs as in `load`. A part may have none; a whole
        split must have one.

    Raises:
        ValueError: as `load`, or a wrong `part`, at once; and at the end of a whole split without a
            usable pair.
        OSError: as `load`, at once; and if a set turns out to be damaged.
    """
    if not 0 <= part < parts:
        raise ValueError(
            f"`part` must be from 0 to `parts` - 1. Received: part={part}, parts={parts}. Count "
            "parts from 0."
        )
    builder = builder_of(dataset, data_dir, source_language, target_language)
    examples = _examples(builder, dataset, (source_language, target_language), split, part, parts)
    name = f"split {split!r} of {dataset}"
    rows = _pairs(examples, Dropped() if dropped is None else dropped, name, part, parts)
    return ((source, target) for _, source, target in rows)


def _examples(
    builder, dataset: str, languages: Sequence[str], split: str, part: int = 0, parts: int = 1
) -> list:
    """One even part of a split, as datasets of (source, target) bytes. Nothing is read yet."""
    import tensorflow_datasets as tfds

    splits = builder.info.splits
    try:
        instructions = tfds.even_splits(split, parts)[part].to_absolute(splits)
    except (ValueError, NotImplementedError, AssertionError) as error:
        raise ValueError(
            f"`split` must be one of {dataset}, or a slice such as train[:1%]. Received: "
            f"{split!r} ({one_line(error)}). "
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
    examples: list, dropped: Dropped, name: str, part: int = 0, parts: int = 1
) -> Iterator[tuple[int, str, str]]:
    """Yield the usable pairs of a split, each with its number there. A part, whose numbers are its
    own, may have none.
    """
    usable = 0
    place = name if parts == 1 else f"part {part + 1} of {parts} of {name}"
    for number, pair in enumerate(_read(examples), 1):
        source, target = (" ".join(side.decode("utf-8").splitlines()).strip() for side in pair)
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


def _read(examples: list) -> Iterator[tuple[bytes, bytes]]:
    import tensorflow as tf

    try:
        for one in examples:
            for sources, targets in one.batch(EXAMPLES_A_READ).prefetch(1).as_numpy_iterator():
                yield from zip(sources, targets, strict=True)
    except tf.errors.OpError as error:
        raise OSError(
            f"A set of TFDS is damaged: {one_line(error)}. Delete its folder, to prepare it again."
        ) from error
