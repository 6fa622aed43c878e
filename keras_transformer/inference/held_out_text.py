"""The text that a trained model is evaluated on: a split of its corpus, or two files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pipelines import corpora, line_files


class HeldOut(NamedTuple):
    """Sources, references, and a function that scores translations: `evaluation.metrics.score`."""

    sources: Sequence[str]
    references: Sequence[str]
    measure: Callable[[Sequence[str], Sequence[str]], dict]


def held_out_text(
    description: dict,
    model: str,
    split: str,
    source_file: str | None = None,
    reference_file: str | None = None,
) -> tuple[list[str], list[str]]:
    files = (source_file, reference_file)
    if any(files):
        if not all(files):
            raise ValueError(
                "--source_file and --reference_file go together: pass both, or neither for a split "
                "of the corpus."
            )
        return line_files.read_aligned(*files)
    text = getattr(corpus_of(description, model, "--source_file and --reference_file"), split)
    if not isinstance(text, corpora.ParallelText):
        raise ValueError(
            f"--split={split} of a corpus of records is ids, no text. Choose valid or test, or "
            "pass --source_file and --reference_file."
        )
    return list(text.sources), list(text.targets)


def corpus_of(description: Mapping, model: str, instead: str, load: Callable = corpora.load) -> Any:
    """Load the corpus that a model was trained on. An error says what to pass `instead`."""
    if "corpus" not in description:
        raise ValueError(f"{model} does not say what it was trained on: pass {instead}.")
    try:
        return load(**description["corpus"])
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{model} was trained on text that is no longer there ({error}): pass {instead}."
        ) from error
