"""Scoring of a model on text or pictures that it has not seen (Vaswani et al. 2017, section 6): the
interface of `evaluate` for every task, and of `tune` and `visualize` for translators and parsers.
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

# Defaults of the flags of `evaluate`.
DEFAULTS = {
    name: field.default
    for section in (ScoringOptions, TreeScoring, Tokenizer, Files)
    for name, field in settings(section).items()
}
# Flags of `evaluate` that are for answers with a reference.
OF_ANSWERS = ("metrics", "confidence", "baseline_file", "source_file", "evalb_parameters")
# The reason to refuse them, for a model that does {}.
NO_ANSWERS = (
    "is for answers that have a reference, and {{model}} {}: leave it out. Text of your own goes "
    "into --reference_file."
)


class Scorer(abc.ABC):
    """Scores the answers of a task's model for `evaluate`.

    Its constructor reads all flags and files, so that errors in them come before the model is
    loaded.

    Attributes:
        searches: whether answers depend on the flags of a search.
        useless: flags that it refuses.
        because: the reason, which follows the flag's name; {model} is the model's path.

    Args:
        description: the contents of the model's `model.json`.
        model: path of the model.
        values: values of the flags of scoring, of the tokenizer, of files and, for `evaluate`, of
            the precision, by name.
    """

    searches: bool = False
    useless: Sequence[str] = ()
    because: str = ""

    def __init__(self, description: Mapping, model: str, values: Mapping):
        if refused := [name for name in self.useless if values[name]]:
            raise ValueError(f"--{refused[0]} {self.because.format(model=model)}")
        self.description = description
        self.model = model

    @abc.abstractmethod
    def examine(self, loading: Mapping, at_once: int) -> dict:
        """Load the model, run it, and score its answers: JSON, with a "warning" if there is one.
        `loading` has "precision", "batch_tokens", and "options", the flags of decoding that are
        set; `at_once` is the number of batches to work on in parallel.
        """

    @abc.abstractmethod
    def table(self, numbers: Mapping) -> str:
        """Return the result of `examine` as text for people."""

    def module(self, precision: str) -> ServedModule:
        """Load the module of the run that is scored."""
        task = task_class(task_of(self.description))
        return task.reload(ModelPath.of(self.model).run, {"precision": precision})

    def corpus(self, instead: str, load: Callable = corpora.load) -> Any:
        """Load the corpus that the model was trained on; see `corpus_of`."""
        return corpus_of(self.description, self.model, instead, load)

    def lines(self, values: Mapping) -> dict[int, str]:
        """Return lines of one language by number, of --reference_file or else of the split."""
        if name := values["reference_file"]:
            lines = {number: line for number, line in enumerate(read_lines(name), 1) if line}
            if not lines:
                raise ValueError(f"{name} holds no text. Fill it, or name another file.")
            return lines
        text = getattr(self.corpus("text by --reference_file"), values["split"])
        return dict(enumerate(text.sources, 1))


class SentenceScorer(Scorer):
    """Scores the translations or trees that a model makes of `sources`, by `references`. `measure`
    describes `quality` in a phrase, `unit` in a word.
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
        """Score only the first `count` sentences."""
        self.sources = self.sources[:count]
        self.references = self.references[:count]

    @abc.abstractmethod
    def quality(self, answers: Sequence[str]) -> float:
        """Return one score of the answers to `sources`, from 0 to 100, higher is better."""

    def warning(self) -> str | None:
        """Return what makes the scores doubtful, if anything does."""
        return None

    @abc.abstractmethod
    def score(self, answers: Sequence[str]) -> dict:
        """Score the answers to `sources`: JSON, with the number of "sentences"."""


def validation_of(model: str, values: Mapping, asker: str) -> SentenceScorer:
    """Make the scorer of a model for its validation split or for files."""
    description = description_of(model)
    task = task_of(description)
    kind = task_class(task).scorer
    if not issubclass(kind, SentenceScorer):
        raise ValueError(
            f"{asker} scores translators and parsers. Received: {model}, of the task {task}."
        )
    return kind(description, model, {**DEFAULTS, **values, "split": "valid"})
