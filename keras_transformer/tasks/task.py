"""The contract between what is learned and the commands that train and export it.

`train` knows a `Task` and nothing of translation. Resuming, replicas, preemption, averaging, early
stopping, fine-tuning and export are the same for every task, and no task has to ask for them.
"""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np

from keras_transformer.inference.generator import perplexity
from keras_transformer.inference.held_out_text import HeldOut
from keras_transformer.inference.loading import module_of_run
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.saved_models.write import export
from keras_transformer.tasks import TASKS
from keras_transformer.training.loss import LabelSmoothedCrossEntropy, label_measures
from keras_transformer.training.objective import LIKELIHOOD, Objective, RDrop
from pipelines.batches.examples import Examples
from pipelines.options import Options


@dataclasses.dataclass(frozen=True)
class Score:
    """How good a trained model is on the test set.

    Attributes:
        numbers: JSON, for `evaluation.json` and the card of the SavedModel.
        report: lines to print; the first says the numbers.
        samples: JSON, a list; the run keeps them, and each export takes its golden ones from it.
    """

    numbers: dict
    report: Sequence[str] = ()
    samples: Sequence = ()


class Task(abc.ABC):
    """What is learned: examples, a model, its loss, what is measured, and what leaves.

    A batch of the examples is Keras' triple (inputs, labels, weights). The weights, float32 of the
    shape of the labels, say which labels count: nothing else knows padding.

    Args:
        values: of `options` and of those that `train` or `export` always read, by name.

    Attributes:
        name: what a run's `model.json` calls it.
        options: sections of options that training reads besides its own.
        export_options: likewise those that `export` reads.
        labels: what its labels are called, for the progress bar.
        higher_is_better: by name those of its measures that `--keep_best` may choose by, and
            whether more of each is better.
        unmeasured: what to do if `--keep_best` names another measure.
        measures_perplexity: whether the perplexity is measured after each epoch too.
        monitor: the measure that `--patience` waits for if `--keep_best` names none.
        width: d_model of the paper's learning rate.
        pieces: of "source" and of "target" the strings that the rows of the embedding table stand
            for. `--init_from` carries over the rows of those that another vocabulary has too. None:
            there is no vocabulary.
        carried_over: names of the layers that `--init_from` sets, where a model of another task may
            be named; the others begin anew. None: all.
        trial: a line for a shell that tries an export, of {sample}, the first one, {version}, the
            folder of the SavedModel, and {versions}, the folder above it. "": there is none.
        is_portable: whether its models run without TensorFlow.
        portable: those of `--export_formats` that do, if the run exports.
        scorer: what `evaluate` asks of a model of this task: a `score.Scorer`.
        module_class: the `ServedModule` that builds its models, and is scored and exported.
    """

    name: str
    options: tuple[type[Options], ...] = ()
    export_options: tuple[type[Options], ...] = ()
    labels: str = "labels"
    higher_is_better: Mapping[str, bool] = {"cross_entropy": False, "accuracy": True}
    unmeasured: str = "Choose one of these, which are measured after each epoch."
    measures_perplexity: bool = False
    monitor: str = "cross_entropy"
    width: int = 512
    pieces: Mapping[str, Sequence[str]] | None = None
    carried_over: Sequence[str] | None = None
    trial: str = ""
    is_portable: bool = False
    scorer: type | None = None
    module_class: type[ServedModule]

    def __init_subclass__(cls, **kwargs):
        """Give a task of `TASKS` the options that stand there, unless it names its own."""
        super().__init_subclass__(**kwargs)
        if registered := TASKS.get(vars(cls).get("name")):
            for sections in {"options", "export_options"} - vars(cls).keys():
                setattr(cls, sections, getattr(registered, sections))

    def __init__(self, values: Mapping):
        self.values = values
        formats = values.get("export_formats", ())
        self.portable = [one for one in formats if one != "saved_model"]
        if self.portable and not self.is_portable:
            raise ValueError(
                f"--export_formats={','.join(formats)} is for translators and language models. "
                f"Received: --task={self.name}. Leave it out."
            )
        if keras.backend.backend() != "tensorflow" or not (self.portable and values["release"]):
            self.portable = []
        for one in self.portable:
            from keras_transformer.inference.portable_export import require_packages

            # Before the training, at whose end they are needed.
            require_packages(one)

    def refuse_format(self, form: str, model: keras.Model, folder: RunFolder) -> None:
        """Refuse, before the training, one of `--export_formats` that this model has not."""
        from keras_transformer.inference import portable_export

        module = self.module_class.of_model(model, folder, self.values)
        portable_export.refuse(module, form)
        portable_export.require_operations(module, form, folder.path)

    @classmethod
    def default_model_dir(cls, values: Mapping) -> str:
        """The run's folder where `--model_dir` names none."""
        return f"runs/{cls.name}"

    def write_files(self, folder: RunFolder) -> None:
        """Write what the run needs besides weights, such as a vocabulary, into its folder.

        Called once for a new run, by one host. By default there is nothing to write.
        """
        return

    def read_files(self, folder: RunFolder) -> None:
        """Read what `write_files` wrote. Called by every host, before anything else."""
        return

    @abc.abstractmethod
    def description(self) -> dict[str, dict]:
        """Say what the run is, in parts, for its `model.json`."""

    @classmethod
    def fixed(cls, description: dict) -> dict:
        """The parts of a run's description that must not change when it is resumed: all, unless
        told otherwise. The description may be of an earlier version, which did not write all of it.
        """
        return description

    @abc.abstractmethod
    def introduce(self) -> None:
        """Print what is trained on."""

    @abc.abstractmethod
    def examples(self, split: str) -> Examples:
        """The examples of a split: "train", to train on, or "valid", to measure after an epoch."""

    def example_weights(self) -> np.ndarray | None:
        """How often each example comes in an epoch, (examples,); None: once."""
        return None

    def start(self, model: keras.Model) -> None:
        """Set those weights of a new run that do not begin as they were drawn.

        Called for a new run without `--init_from`, by every host; all must set the same values. By
        default there are none.
        """
        return

    def loss(self) -> keras.losses.Loss:
        """The loss; its `call` gives float32 of the shape of the labels, a loss for each."""
        return LabelSmoothedCrossEntropy(self.values["label_smoothing"])

    def objective(self) -> Objective:
        """What a batch adds to the loss that is minimized."""
        alpha = self.values["r_drop"]
        return RDrop(alpha) if alpha else LIKELIHOOD

    def validation(self, model: keras.Model, batches: Callable) -> Callable[[], dict[str, float]]:
        """Make the function that measures a model after each epoch, by name: cross-entropy and
        accuracy, unless told otherwise. The model is float32, and its weights are set before each
        call; `batches` gives the validation examples as `model.evaluate` takes them.
        """
        measures = label_measures(model, batches)
        return (lambda: with_perplexity(measures())) if self.measures_perplexity else measures

    @classmethod
    def reload(cls, folder: RunFolder, values: Mapping) -> ServedModule:
        """What is scored and exported of a run's folder; values as in `ServedModule.of_model`, with
        the "precision" of the weights, by default float32. A ValueError says that the run does not
        say what its model is, or that a file is damaged.
        """
        return module_of_run(folder, values, cls.module_class)

    @abc.abstractmethod
    def score(self, module: ServedModule) -> Score:
        """Score what was trained, on the test set."""

    @classmethod
    def write(
        cls,
        form: str,
        module: ServedModule,
        folder: str | pathlib.Path,
        description: Mapping,
        examples: Sequence,
        precision: str = "float32",
        version: int | None = None,
    ) -> pathlib.Path:
        """Write a version of a format, "saved_model" or one of those that run without TensorFlow,
        into a folder; arguments and result as of `inference.portable_export.export`. A SavedModel
        has the precision of its module.
        """
        if form == "saved_model":
            return export(module, folder, description, examples, version)
        from keras_transformer.inference import portable_export

        held_out = None if precision == "float32" else cls.held_out(description)
        return portable_export.export(
            module, folder, description, examples, precision, version, form, held_out
        )

    @classmethod
    def held_out(cls, description: Mapping) -> HeldOut | None:
        """What an export with rounded weights is measured on; None if that is nothing."""
        return None

    @classmethod
    def convert(cls, folder: RunFolder, path: pathlib.Path, values: Mapping) -> pathlib.Path:
        """Write a run's model in another format than a SavedModel, the `--format` in `values`, if
        this task has one. Gives where it was written.
        """
        raise ValueError(
            f"--format={values['format']} is no format of the task {cls.name}. Leave it out."
        )


def with_perplexity(numbers: Mapping[str, float]) -> dict[str, float]:
    """What `label_measures` gives, and the perplexity, exp(cross-entropy), or infinity."""
    cross_entropy = numbers["cross_entropy"]
    return {"cross_entropy": cross_entropy, "perplexity": perplexity(cross_entropy), **numbers}
