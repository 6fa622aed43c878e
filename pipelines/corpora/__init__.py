"""Where the sentence pairs come from (Vaswani et al. 2017, section 5.1): one corpus a file, chosen by name.

Example:
    corpus = load("text_files", source_language="en", target_language="de", data_dir="my_text")
    print(len(corpus.train), corpus.train.sources[0], corpus.train.targets[0])
"""

import os
from collections.abc import Callable, Sequence

from pipelines.corpora import home_assistant, reverse, text_files
from pipelines.corpora.parallel_text import Corpus, ParallelText

__all__ = ["CORPORA", "Corpus", "ParallelText", "load"]

# Each entry takes the keywords of `load` and hands its corpus those that it reads.
CORPORA: dict[str, Callable[..., Corpus]] = {
    "home_assistant": lambda source_language, target_language, cache_dir, **_: home_assistant.load(
        source_language, target_language, cache_dir=cache_dir
    ),
    "text_files": lambda source_language, target_language, data_dir, prefixes, **_: text_files.load(
        source_language, target_language, data_dir=data_dir, prefixes=prefixes
    ),
    "reverse": lambda source_language, target_language, seed, **_: reverse.load(source_language, target_language, seed=seed),
}


def load(
    name: str,
    *,
    source_language: str,
    target_language: str,
    data_dir: str | os.PathLike | None = None,
    cache_dir: str | os.PathLike | None = None,
    prefixes: Sequence[str] = ("train", "valid", "test"),
    seed: int = 0,
) -> Corpus:
    """Loads a corpus by its name.

    Args:
        name: a key of `CORPORA`.
        source_language: language code to translate from.
        target_language: language code to translate into.
        data_dir: folder of the user's own files; `text_files` needs it and no other corpus takes it.
        cache_dir: folder that keeps the download of `home_assistant`; None: the user's cache folder.
        prefixes: names of the three splits of `text_files`: training, validation, test.
        seed: seed of the generated corpus `reverse`.

    Returns:
        The `Corpus`, its three splits non-empty.

    Raises:
        ValueError: unknown `name`, `data_dir` with a corpus that reads none, or text that cannot be used.
        OSError: a file that is missing or cannot be read or downloaded.
    """
    if name not in CORPORA:
        raise ValueError(f"`corpus` must be one of {', '.join(sorted(CORPORA))}. Received: {name!r}.")
    if data_dir is not None and name != "text_files":
        raise ValueError(
            f"Only corpus text_files reads `data_dir`. Received: corpus={name}, data_dir={data_dir}. Pass --corpus=text_files."
        )
    return CORPORA[name](
        source_language=source_language,
        target_language=target_language,
        data_dir=data_dir,
        cache_dir=cache_dir,
        prefixes=prefixes,
        seed=seed,
    )
