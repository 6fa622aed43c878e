"""How a model is scored on text or pictures that it has not seen (Vaswani et al. 2017, section 6):
what `evaluate` asks of every task, and `tune` and `visualize` of those that make text of sentences.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_transformer.evaluation.options import Files, ScoringOptions, Tokenizer, TreeScoring
from keras_transformer.inference.held_out_text import corpus_of
from keras_transformer.inference.line_batches import speed_bar
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import ModelPath, description_of
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.tasks import task_class
from pipelines import corpora
from pipelines.line_files import read_lines
from pipelines.options import settings

# What who does not ask for them gets of the flags of `evaluate`.
DEFAULTS = {
    name: one.default
    for section in (ScoringOptions, TreeScoring, Tokenizer, Files)
    for name, one in settings(section).items()
}
# Flags of `evaluate` that are for answers with a reference.
OF_ANSWERS = ("metrics", "confidence", "baseline_file", "source_file", "evalb_parameters")
# Why they are useless for a model, by what that does.
NO_ANSWERS = (
    "is for answers that have a reference, and {{model}} {}: leave it out. Text of your own goes "
    "into --reference_file."
)


class Scorer(abc.ABC):
    """What `evaluate` asks of a model of a task, and how its answers are scored.

    Making one reads all flags and files: errors in them are reported before the model is loaded.

    Attributes:
        searches: whether its answers depend on the flags of a search.
        useless: flags that it refuses.
        because: why, after the flag's name; {model} is where the model lies.

    Args:
        description: what the model is: its `model.json`.
        model: where it lies.
        values: of the flags of scoring, of the tokenizer and of files, by name.
    """

    searches: bool = False
    useless: Sequence[str] = ()
    because: str = ""

    def __init__(self, description: Mapping, model: str, values: Mapping):
        if given := [name for name in self.useless if values[name]]:
            raise ValueError(f"--{given[0]} {self.because.format(model=model)}")
        self.description = description
        self.model = model

    @abc.abstractmethod
    def examine(self, loading: Mapping, at_once: int) -> dict:
        """Load the model, ask it, and score its answers: JSON, with a "warning" if there is one.
        `loading` has "precision", "batch_tokens", and "options", the flags of decoding that were
        given; the processor may work on so many batches at once.
        """

    @abc.abstractmethod
    def table(self, numbers: Mapping) -> str:
        """What `examine` gave, for people."""

    def module(self, precision: str) -> ServedModule:
        """The module of the run that is scored."""
        task = task_class(task_of(self.description))
        return task.reload(ModelPath.of(self.model).run, {"precision": precision})

    def corpus(self, instead: str, load: Callable = corpora.load) -> Any:
        """The corpus that the model was trained on; see `corpus_of`."""
        return corpus_of(self.description, self.model, instead, load)

    def lines(self, values: Mapping) -> Sequence[str]:
        """Lines of one language: of --reference_file, or of the split."""
        if name := values["reference_file"]:
            lines = [line for line in read_lines(name) if line]
            if not lines:
                raise ValueError(f"{name} holds no text. Fill it, or name another file.")
            return lines
        return getattr(self.corpus("text by --reference_file"), values["split"]).sources


class SentenceScorer(Scorer):
    """How models are scored that make text or trees of `sources`, which should be `references`;
    `measure` says in words what `quality` is, `unit` in a word.
    """

    searches = True
    sources: Sequence[str]
    references: Sequence[Any]
    measure: str
    unit: str

    def examine(self, loading, at_once):
        translator = Translator.load(self.model, loading["precision"], **loading["options"])
        with speed_bar(len(self.sources)) as report:
            answers = translator.translate(
                self.sources,
                batch_tokens=loading["batch_tokens"],
                batches_at_once=at_once,
                report=report,
            )
        numbers = self.score(answers)
        warning = self.warning()
        return {**numbers, "warning": warning} if warning else numbers

    def keep_first(self, count: int) -> None:
        """Ask no more than the first sentences, if there are more."""
        self.sources = self.sources[:count]
        self.references = self.references[:count]

    @abc.abstractmethod
    def quality(self, answers: Sequence[str]) -> float:
        """One score of the answers to `sources`, the higher the better, in points out of 100."""

    def warning(self) -> str | None:
        """What makes the scores doubtful, if anything does."""
        return None

    @abc.abstractmethod
    def score(self, answers: Sequence[str]) -> dict:
        """Score the answers to `sources`: JSON, with the number of "sentences"."""


def validation_of(model: str, values: Mapping, asker: str) -> SentenceScorer:
    """What `evaluate` asks of a model, of its validation split or of files."""
    description = description_of(model)
    task = task_of(description)
    kind = task_class(task).scorer
    if not issubclass(kind, SentenceScorer):
        raise ValueError(
            f"{asker} scores translators and parsers. Received: {model}, a model of the task "
            f"{task}."
        )
    return kind(description, model, {**DEFAULTS, **values, "split": "valid"})
