"""The callbacks that watch over a run, in the necessary order (for section 5 of Vaswani et al.
2017): limits, checkpoints, signals, validation, the best epoch, curves.
"""

import math
from collections.abc import Callable, Mapping

import keras

from keras_transformer.training import checkpoint
from keras_transformer.training.checkpointing import Checkpointing, Window
from keras_transformer.training.ending import (
    Ending,
    StopAtLimit,
    StopOnDivergence,
    StopOnSignal,
    Stopwatch,
)
from keras_transformer.training.progress import ProgressBar
from keras_transformer.training.validation import BestSoFar, Validation, validations
from pipelines.whole_files import errors_naming


class Board(keras.callbacks.TensorBoard):
    """TensorBoard's files; the curves of a resumed run continue at its step, not at 0. If they
    cannot be written (a full disk), a line says so, and training continues without them.
    """

    def __init__(self, folder, report=print):
        super().__init__(folder, write_graph=False, update_freq=100)
        self.report = report
        self.lost: list[str] = []

    def on_train_begin(self, logs=None):
        self._try(super().on_train_begin, logs)
        self._global_train_batch = checkpoint.step_of(self.model)

    def on_train_batch_end(self, batch, logs=None):
        self._try(super().on_train_batch_end, batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        self._try(super().on_epoch_end, epoch, logs)

    def on_train_end(self, logs=None):
        self._try(super().on_train_end, logs)

    def _try(self, write, *arguments):
        if self.lost:
            return
        try:
            with errors_naming(self.log_dir):
                write(*arguments)
        except OSError as error:
            self.lost.append(f"the curves in {self.log_dir}")
            self.report(f"{self.lost[0]} could not be written: {error}. Training continues.")


def window_of(values: Mapping, last_step: float = math.inf) -> Window | None:
    """Make the `Window` of a run that is limited by minutes and averages timed checkpoints."""
    minutes = values["max_minutes"]
    if not minutes or values["average_over"] != "minutes":
        return None
    return Window(minutes * 60, values["average_share"], values["average_checkpoints"], last_step)


class Watchers:
    """The callbacks of a run of a `Task` in its `RunFolder`, which resumes at a step and ends at
    the last step at the latest; `measure` takes the model, and returns numbers by name.

    Attributes:
        callbacks: the callbacks of this host in order; only the chief's write files.
    """

    def __init__(
        self,
        task,
        values: Mapping,
        folder,
        is_chief: bool,
        ending: Ending,
        step: int,
        stopwatch: Stopwatch,
        last_step: int,
        measure: Callable[[keras.Model], dict[str, float]],
    ):
        self.folder = folder
        self.is_chief = is_chief
        self.step = step
        self.last_step = last_step
        minutes = math.inf if values["max_minutes"] is None else values["max_minutes"]
        window = window_of(values, last_step)
        divergence = StopOnDivergence()
        self.limit = StopAtLimit(ending, stopwatch, minutes, last_step)
        # A host that writes nothing waits for the chief: if it left first, each would take the
        # other for lost.
        signal = StopOnSignal(ending, at_once=is_chief)
        self.bar = ProgressBar(last_step, stopwatch, minutes, labels=task.labels)
        self.saving = Checkpointing(
            folder.checkpoints,
            stopwatch,
            values["keep_checkpoints"],
            values["checkpoint_minutes"],
            values["average_over"],
            self.bar.report,
            window,
        )
        self.validation = Validation(measure, folder.history, self.bar.report)
        self.board = Board(folder.logs, self.bar.report)
        # The one `BestSoFar`, or none.
        self.best = []
        if values["keep_best"] or values["patience"]:
            monitor = values["keep_best"] or task.monitor
            is_higher = task.higher_is_better[monitor]
            files = (folder.history, folder.best)
            rest = (monitor, is_higher, step, values["patience"], self.bar.report)
            self.best.append(BestSoFar(ending, *files, *rest))
        # A diverged state must not be saved; a preempted run is saved, and does not wait for
        # validation; Keras' own callback reads the results of all others.
        after_saving = [self.validation, self.bar, *self.best, self.board]
        of_chief = [divergence, self.limit, self.saving, signal, *after_saving]
        self.callbacks = of_chief if is_chief else [divergence, self.limit, signal]

    @property
    def are_over(self) -> bool:
        """Whether the run has nothing left to do: its time or its patience is spent."""
        return self.limit.is_out_of_time or any(best.is_over for best in self.best)

    def catch_up(self, model: keras.Model, steps_per_epoch: int) -> None:
        """Measure the end of an epoch or a run that was saved, but not measured before a stop."""
        step = self.step
        is_end = step % steps_per_epoch == 0 or step >= self.last_step
        if not step or not (is_end or self.limit.is_out_of_time):
            return
        if (step, step) in validations(self.folder.history, "step", step):
            return
        logs = {}
        for watcher in (self.validation, *self.best):
            watcher.set_model(model)
            watcher.on_epoch_end((step - 1) // steps_per_epoch, logs)

    def mend(self, model: keras.Model, steps_per_epoch: int) -> None:
        """Write what a kill prevented after the checkpoint from which the run resumes.

        `model.fit` may never be called again: the run may be over.
        """
        self.saving.keep_epoch(self.step, steps_per_epoch)
        for best in self.best:
            best.set_model(model)
            best.on_train_begin()

    def require_saved(self, model: keras.Model) -> None:
        """Save what was trained, if it is not; raise an OSError that names what is lost."""
        step = checkpoint.step_of(model)
        try:
            self.saving.require_saved(model)
        except OSError as error:
            newest = "There is no checkpoint before it."
            if saved := checkpoint.checkpoints(self.folder.checkpoints):
                newest = f"The newest checkpoint is of step {checkpoint.step_in(saved[-1])}."
            raise OSError(
                f"the last weights, of step {step}, could not be saved: {error}. {newest} "
                f"{checkpoint.remedy_of(error)} Then the same command goes on from there."
            ) from error
        writers = (self.validation, *self.best, self.board)
        lost = [line for writer in writers for line in writer.lost]
        if lost:
            raise OSError(
                f"could not be written: {'; '.join(lost)}. The last weights, of step {step}, are "
                "saved. Make room; then the same command goes on with them."
            )

    def what_is_saved(self) -> str:
        self.bar.on_train_end()
        if not self.is_chief:
            return "the first host saves the run."
        return f"step {self.saving.saved_step} is saved; the same command resumes."
