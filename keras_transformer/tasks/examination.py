"""What the command `evaluate` asks of a task: it reads a split or files, asks the model and scores
its answers (Vaswani et al. 2017, section 6).
"""

import abc
from collections.abc import Mapping


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
