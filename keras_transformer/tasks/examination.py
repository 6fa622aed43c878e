"""The contract between a task and the command `evaluate`: text of a split or of files, and what the
model makes of it as figures (Vaswani et al. 2017, section 6).
"""

import abc
from collections.abc import Mapping, Sequence


class Examination(abc.ABC):
    """What is asked of a model of a task, and how its answers are scored.

    Making one reads all flags and files: what is wrong with them is told before the model works.

    Args:
        description: what the model is: its `model.json`.
        model: where it lies, for errors.
        values: of the flags of the groups "evaluate", "tokenize" and "files", by name.

    Attributes:
        sources: the sentences that the model is asked.

    Raises:
        ValueError: if flags do not fit together, or there is no such text.
        OSError: if a file cannot be read.
    """

    sources: Sequence[str]

    @abc.abstractmethod
    def __init__(self, description: Mapping, model: str, values: Mapping):
        pass

    @abc.abstractmethod
    def score(self, answers: Sequence[str]) -> dict:
        """Score the answers to `sources`.

        Returns:
            JSON, with the number of "sentences", and a "warning" if there is one.
        """

    @abc.abstractmethod
    def table(self, found: Mapping) -> str:
        """What `score` gave, for people."""
