"""How a run of `model.fit` ends before its last step (section 5.2 of Vaswani et al. 2017 trains on
machines that may be taken away).
"""

import keras


class Preempted(Exception):
    """The machine is about to be taken away, and everything is saved."""


class Ending:
    """Ends `model.fit`, for whatever reason a callback has.

    Args:
        model: the `keras.Model` that is trained.

    Attributes:
        is_preempted: whether any host is about to be taken away. One host alone learns of its own
            signal by itself; `AgreedEnding` sets this for several.
    """

    def __init__(self, model: keras.Model):
        self.model = model
        self.is_preempted = False

    def ask(self, preempted: bool = False) -> None:
        """End training after the step that is under way.

        Args:
            preempted: whether the machine is about to be taken away.
        """
        self.model.stop_training = True


class AgreedEnding(Ending):
    """Ends training on all hosts after the same step.

    A host that left alone would leave the others waiting. So each host's wish, its votes, is added
    up in the step itself: all hosts learn of it there, and stop after that step.

    Args:
        model: the `keras.Model` that is trained.
        several_hosts: whether others train with this one.

    Attributes:
        votes: whether this host asks for an end, and for one by preemption; each 0.0 or 1.0.
        is_preempted: whether some host asked for an end by preemption.
    """

    def __init__(self, model: keras.Model, several_hosts: bool):
        super().__init__(model)
        self.several_hosts = several_hosts
        self.votes = [0.0, 0.0]

    def ask(self, preempted: bool = False) -> None:
        self.votes = [1.0, float(preempted)]
        if not self.several_hosts:
            super().ask(preempted)

    def count(self, stop: float, preempted: float) -> None:
        """Take in the sums of all hosts' votes."""
        if stop:
            self.model.stop_training = True
        self.is_preempted = bool(preempted)
