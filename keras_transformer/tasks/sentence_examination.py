"""Sentences that a model makes something of, and how that is scored: of a translator and a parser
(Vaswani et al. 2017, sections 6.1 and 6.3). `evaluate` prints all scores, `tune` compares searches
by one of them.
"""

import abc
from collections.abc import Mapping, Sequence

from keras_transformer.tasks.examination import Examination
from keras_transformer.translator.speed_bar import speed_bar
from keras_transformer.translator.translator import Translator


class SentenceExamination(Examination):
    """Sentences in, sentences or trees out.

    Attributes:
        sources: the sentences that the model is asked.
        model: where it lies.
        measure: what `quality` is, in words.
    """

    sources: Sequence[str]
    measure: str

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
