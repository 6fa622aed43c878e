"""Where the sentence pairs come from (Vaswani et al. 2017, section 5.1): one corpus a file, chosen
by name.

Example:
    corpus = load("text_files", source_language="en", target_language="de", data_dir="my_text")
    print(len(corpus.train), corpus.train.sources[0], corpus.train.targets[0])
"""

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence

from pipelines.corpora import (
    home_assistant,
    intents,
    lines,
    records,
    reverse,
    spans,
    text_files,
    tfds,
    treebank,
)
from pipelines.corpora.mixture import load as load_mixture
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.refusals import OWN_LANGUAGES, check_settings
from pipelines.dropped import Dropped

__all__ = ["CORPORA", "OWN_LANGUAGES", "Corpus", "ParallelText", "held_out", "load", "stream"]

SPLITS = ("train", "valid", "test")
TFDS_SPLITS = ("train", "validation", "test")
# Each entry takes the keywords of `load` and hands its corpus those that it reads.
CORPORA: dict[str, Callable[..., Corpus]] = {
    "home_assistant": lambda source_language, target_language, cache_dir, **_: home_assistant.load(
        source_language, target_language, cache_dir=cache_dir
    ),
    "text_files": lambda source_language, target_language, data_dir, prefixes, strict, **_: (
        text_files.load(
            source_language, target_language, data_dir=data_dir, prefixes=prefixes, strict=strict
        )
    ),
    "lines": lambda source_language, data_dir, prefixes, strict, **_: lines.load(
        source_language, data_dir=data_dir, prefixes=prefixes, strict=strict
    ),
    "spans": lambda source_language, data_dir, prefixes, seed, strict, **_: spans.load(
        source_language, data_dir=data_dir, prefixes=prefixes, seed=seed, strict=strict
    ),
    "intents": lambda source_language, target_language, **_: intents.load(
        source_language, target_language
    ),
    "treebank": lambda source_language, data_dir, prefixes, tree_leaves, strict, **_: treebank.load(
        source_language,
        data_dir=data_dir,
        prefixes=prefixes,
        leaves=tree_leaves or "xx",
        strict=strict,
    ),
    "reverse": lambda source_language, target_language, seed, **_: reverse.load(
        source_language, target_language, seed=seed
    ),
    "records": lambda data_dir, **_: records.load(data_dir),
    "tfds": lambda source_language, target_language, dataset, data_dir, splits, strict, **_: (
        tfds.load(
            source_language,
            target_language,
            dataset=dataset,
            data_dir=data_dir,
            splits=splits,
            strict=strict,
        )
    ),
    "mixture": lambda mixture, cache_dir, tree_leaves, strict, **_: load_mixture(
        mixture, load, cache_dir=cache_dir, tree_leaves=tree_leaves, strict=strict
    ),
}


def _stream_text_files(
    split, reading, *, source_language, target_language, data_dir=None, prefixes=SPLITS, **_
):
    return text_files.stream(
        source_language, target_language, data_dir=data_dir, prefix=prefixes[split], **reading
    )


def _stream_tfds(
    split,
    reading,
    *,
    source_language,
    target_language,
    dataset=None,
    data_dir=None,
    splits=TFDS_SPLITS,
    **_,
):
    return tfds.stream(
        source_language,
        target_language,
        dataset=dataset,
        data_dir=data_dir,
        split=splits[split],
        **reading,
    )


# Corpora that can be read without being loaded whole. Each entry takes the number of a split, the
# part of it to read, and the keywords of `load`.
STREAMS: dict[str, Callable[..., Iterator[tuple[str, str]]]] = {
    "text_files": _stream_text_files,
    "tfds": _stream_tfds,
}


def load(
    name: str,
    *,
    source_language: str | None,
    target_language: str | None,
    data_dir: str | os.PathLike | None = None,
    cache_dir: str | os.PathLike | None = None,
    prefixes: Sequence[str] = SPLITS,
    seed: int = 0,
    dataset: str | None = None,
    splits: Sequence[str] = TFDS_SPLITS,
    mixture: str | os.PathLike | None = None,
    tree_leaves: str | None = None,
    strict: bool | None = None,
) -> Corpus:
    """Load a corpus by its name.

    Args:
        name: a key of `CORPORA`.
        source_language: language code to translate from; `records` and `mixture` have their own.
        target_language: language code to translate into; the same.
        data_dir: folder of the text of `text_files`, `lines` or `spans`, of the trees of
            `treebank`, of the records of `records`, or of the sets of `tfds`. All but the last need
            it, and no other corpus takes it.
        cache_dir: folder for the download of `home_assistant`; None: the user's cache folder.
        prefixes: names of the three splits of `text_files`, `lines`, `spans` and `treebank`:
            training, validation, test.
        seed: seed of the generated corpus `reverse`, and of `spans`.
        dataset: name of a set of TensorFlow Datasets ("wmt14_translate/de-en"); `tfds` needs it and
            no other corpus takes it.
        splits: names of the three splits of `tfds`, or slices of them.
        mixture: the JSON file of `mixture`, which needs it; no other corpus takes it.
        tree_leaves: what stands for words in trees, of `linearization.LEAVES`; None: "xx".
        strict: whether what would be dropped and counted is refused; None: no.

    Returns:
        The `Corpus`, its three splits non-empty.

    Raises:
        ValueError: unknown `name`, an argument that this corpus does not read, or text that cannot
            be used.
        OSError: a file that is missing or cannot be read or downloaded.
    """
    settings = {
        "source_language": source_language,
        "target_language": target_language,
        "data_dir": data_dir,
        "cache_dir": cache_dir,
        "prefixes": prefixes,
        "seed": seed,
        "dataset": dataset,
        "splits": splits,
        "mixture": mixture,
        "tree_leaves": tree_leaves,
        "strict": strict,
    }
    check_settings(name, settings, sorted(CORPORA))
    return CORPORA[name](**{**settings, "strict": bool(strict)})


def stream(
    name: str,
    *,
    part: int = 0,
    parts: int = 1,
    dropped: Dropped | None = None,
    **settings,
) -> Iterator[tuple[str, str]]:
    """Read one of several parts of a corpus' training side. Together they give each pair once.

    Args:
        name: a key of `CORPORA`, other than "records".
        part: which part, from 0 to `parts` - 1.
        parts: how many parts there are.
        dropped: counter that counts the pairs left out by reason, as they are met. A corpus that is
            loaded whole counts all its splits together, which `held_out` does.
        **settings: the other keywords of `load`.

    Returns:
        Iterator over (source, target).

    Raises:
        ValueError, OSError: as `load`; or if the corpus is of records, which hold no text, or has
            weights, which the pairs alone would lose.
    """
    check_settings(name, settings, sorted(CORPORA))
    dropped = Dropped() if dropped is None else dropped
    dropped.strict = bool(settings.get("strict"))
    if name in STREAMS:
        return STREAMS[name](0, {"part": part, "parts": parts, "dropped": dropped}, **settings)
    if name == "records":
        raise ValueError(
            "Corpus records holds token ids, no text. Name the corpus that they were made of."
        )
    corpus = load(name, **settings)
    if corpus.weights is not None:
        raise ValueError(
            f"Corpus {name} has weights other than 1, and pairs read alone would lose them. "
            "Train on it without preparing it."
        )
    train = corpus.train
    return zip(train.sources[part::parts], train.targets[part::parts], strict=True)


def held_out(name: str, **settings) -> Corpus:
    """Load the validation and the test split of a corpus whose training side `stream` reads.

    Args:
        name: a key of `CORPORA`, other than "records".
        **settings: the other keywords of `load`.

    Returns:
        The `Corpus`, without pairs to learn from.

    Raises:
        ValueError, OSError: as `load`, the training side's too where they show without reading it.
    """
    empty = ParallelText([], [])
    if name not in STREAMS:
        return dataclasses.replace(load(name, **settings), train=empty, weights=None)
    check_settings(name, settings, sorted(CORPORA))
    dropped = Dropped(strict=bool(settings.get("strict")))
    splits = [STREAMS[name](split, {"dropped": dropped}, **settings) for split in range(3)]
    valid, test = (ParallelText.from_pairs(split) for split in splits[1:])
    return Corpus(
        name,
        settings["source_language"],
        settings["target_language"],
        empty,
        valid,
        test,
        dropped=dropped,
    )
