"""What watches over a run (Vaswani et al. 2017, section 5): preemption, validation."""

import json
import pathlib
import signal

from keras_transformer.training import checkpoint
from keras_transformer.training.checkpointing import Checkpointing
from keras_transformer.training.ending import Ending, Preempted
from keras_transformer.training.watcher import Watcher
from pipelines.whole_files import errors_naming


class StopOnSignal(Watcher):
    """On SIGTERM, which announces a preemption, finish the step, save it, and end training with
    `Preempted`, on all hosts.

    Args:
        ending: the run's `Ending`.
        at_once: whether training ends as soon as all is saved; else with the next step, in which
            all hosts learn of it.
    """

    BEHIND = (Checkpointing,)

    def __init__(self, ending: Ending, at_once: bool = True):
        super().__init__()
        self.ending = ending
        self.at_once = at_once
        self.is_asked = False
        self.is_saved = False

    def on_train_begin(self, logs=None):
        self.before = signal.signal(signal.SIGTERM, self.ask)

    def on_train_end(self, logs=None):
        signal.signal(signal.SIGTERM, self.before)

    def ask(self, number, frame):
        """Handle the signal."""
        self.is_asked = True
        if self.is_saved and self.at_once:
            self.leave()
        self.ending.ask(preempted=True)

    def leave(self):
        """End training, and raise `Preempted`."""
        # `model.fit` does not come to the end of training.
        self.on_train_end()
        raise Preempted

    def on_epoch_begin(self, epoch, logs=None):
        self.is_saved = False

    def on_epoch_end(self, epoch, logs=None):
        self.is_saved = True
        if (self.is_asked and self.at_once) or self.ending.is_preempted:
            self.leave()


class Validation(Watcher):
    """Measure the model after every epoch, and append the results to a file, one JSON object a
    line. Numbers that are not finite are written as Python's `json` does: NaN, Infinity.

    Args:
        measure: takes the model, gives a dictionary of numbers.
        path: the file that results are appended to.
        report: takes a line for the user.
    """

    # A preempted run is saved, and does not wait for what validation takes.
    BEHIND = (Checkpointing, StopOnSignal)

    def __init__(self, measure, path, report=print):
        super().__init__()
        self.measure = measure
        self.path = pathlib.Path(path)
        self.report = report
        self.lost: list[str] = []

    def on_epoch_end(self, epoch, logs=None):
        logs.update({f"val_{name}": value for name, value in self.measure(self.model).items()})
        logs.pop("labels", None)
        step = checkpoint.step_of(self.model)
        line = json.dumps(
            {
                "epoch": epoch + 1,
                "step": step,
                **{name: float(value) for name, value in logs.items()},
            }
        )
        try:
            with errors_naming(self.path), open(self.path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self.lost.append(f"the line of epoch {epoch + 1} in {self.path}")
            self.report(f"{self.path} could not be written: {error}.")
        self.report(
            f"epoch {epoch + 1}  step {step}  "
            + "  ".join(f"{name} {value:.4g}" for name, value in logs.items())
        )
