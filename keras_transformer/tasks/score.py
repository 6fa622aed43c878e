"""How a model is scored on text or pictures that it has not seen (Vaswani et al. 2017, section 6):
what `evaluate` asks of every task, and `tune` and `visualize` of those that make text of sentences.
"""

import abc
from collections.abc import Mapping, Sequence

from keras_transformer.inference.speed_bar import speed_bar
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import description_of
from keras_transformer.tasks import examination_class


class Examination(abc.ABC):
    """What is asked of a model of a task, and how its answers are scored.

    Making one reads all flags and files: errors in them are reported before the model is
    loaded.

    Attributes:
        searches: whether its answers depend on the flags of a search.

    Args:
        description: what the model is: its `model.json`.
        model: where it lies.
        values: of the flags of the groups "evaluate", "tokenize" and "files", by name.

    Raises:
        ValueError: if flags do not fit together, or there is no such text.
        OSError: if a file cannot be read.
    """

    searches: bool = False

    @abc.abstractmethod
    def __init__(self, description: Mapping, model: str, values: Mapping):
        pass

    @abc.abstractmethod
    def examine(self, loading: Mapping, at_once: int) -> dict:
        """Load the model, ask it, and score its answers.

        Args:
            loading: "precision", "batch_tokens", and "options", the flags of decoding that were
                given.
            at_once: batches that the processor may work on at the same time.

        Returns:
            JSON, with a "warning" if there is one.
        """

    @abc.abstractmethod
    def table(self, found: Mapping) -> str:
        """What `examine` gave, for people."""


UNSET = dict.fromkeys(
    ("metrics", "confidence", "baseline_file", "evalb_parameters", "tokenize"), None
)


class SentenceExamination(Examination):
    """Sentences in, sentences or trees out.

    Attributes:
        sources: the sentences that the model is asked.
        model: where it lies.
        measure: what `quality` is, in words.
        unit: its name, in a word.
    """

    searches = True
    sources: Sequence[str]
    measure: str
    unit: str

    def __init__(self, description: Mapping, model: str, values: Mapping):
        self.model = model

    def examine(self, loading, at_once):
        translator = Translator.load(self.model, loading["precision"], **loading["options"])
        with speed_bar(len(self.sources)) as report:
            answers = translator.translate(
                self.sources,
                batch_tokens=loading["batch_tokens"],
                batches_at_once=at_once,
                report=report,
            )
        found = self.score(answers)
        warning = self.warning()
        return {**found, "warning": warning} if warning else found

    @abc.abstractmethod
    def keep_first(self, count: int) -> None:
        """Ask no more than the first sentences, if there are more."""

    @abc.abstractmethod
    def quality(self, answers: Sequence[str]) -> float:
        """One score of the answers to `sources`, the higher the better, in points out of 100."""

    def warning(self) -> str | None:
        """What makes the scores doubtful, if anything does."""
        return None

    @abc.abstractmethod
    def score(self, answers: Sequence[str]) -> dict:
        """Score the answers to `sources`.

        Returns:
            JSON, with the number of "sentences".
        """


def validation_of(model: str, values: Mapping, asker: str) -> SentenceExamination:
    """What `evaluate` asks of a model, of its validation split or of files; `values` are those of
    its flags, of which all but the files may be missing. `asker` is who wants to know, for the
    error.
    """
    description = description_of(model)
    task = task_of(description)
    kind = examination_class(task)
    if not issubclass(kind, SentenceExamination):
        raise ValueError(
            f"{asker} scores translators and parsers. Received: {model}, a model of the task "
            f"{task}."
        )
    return kind(description, model, {**UNSET, **values, "split": "valid"})
