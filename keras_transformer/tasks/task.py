"""The contract between a task and the commands that train, score and export its models.

`train` knows a `Task` and nothing of translation. Resuming, replicas, preemption, averaging, early
stopping, fine-tuning and export are the same for every task and cost it no code.
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
    """The score of a trained model on the test set.

    Attributes:
        numbers: JSON, for `evaluation.json` and the card of the SavedModel.
        report: lines to print; the first has the numbers.
        samples: a list of inputs as JSON, which the run stores; exports test themselves with them.
    """

    numbers: dict
    report: Sequence[str] = ()
    samples: Sequence = ()


class Task(abc.ABC):
    """What is learned: examples, a model, its loss, its measures, and its export.

    A batch of the examples is Keras' triple (inputs, labels, weights). The weights, float32 of the
    shape of the labels, say which labels count. Padding has no other mark.

    Args:
        values: values of `options` and of the options that `train` or `export` always read, by
            name.

    Attributes:
        name: its name in a run's `model.json`.
        options: sections of options that training reads besides its own.
        export_options: likewise those that `export` reads.
        labels: what its labels are called, for the progress bar.
        higher_is_better: the measures that `--keep_best` may choose by, and whether higher is
            better.
        unmeasured: advice for the error about any other measure.
        measures_perplexity: whether the perplexity is measured after each epoch too.
        monitor: the measure that `--patience` watches if `--keep_best` names none.
        width: d_model of the paper's learning rate.
        pieces: for "source" and "target" the strings of the rows of the embedding table. From a
            model with another vocabulary `--init_from` copies the rows of the strings that both
            have. None: there is no vocabulary.
        carried_over: names of the layers that `--init_from` copies, from models of other tasks
            too; the others start anew. None: all.
        trial: a shell command that tries an export, with {sample}, the first one, {version}, the
            folder of the SavedModel, and {versions}, the folder above it. "": there is none.
        is_portable: whether its models can run without TensorFlow.
        portable: the `--export_formats` that do, if the run exports.
        scorer: the `score.Scorer` of its models.
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
        """Take over the options of this task in `TASKS`, unless the class has its own."""
        super().__init_subclass__(**kwargs)
        if registered := TASKS.get(vars(cls).get("name")):
            for sections in {"options", "export_options"} - vars(cls).keys():
                setattr(cls, sections, getattr(registered, sections))

    def __init__(self, values: Mapping):
        self.values = values
        formats = values.get("export_formats", ())
        self.portable = [form for form in formats if form != "saved_model"]
        if self.portable and not self.is_portable:
            raise ValueError(
                f"--export_formats={','.join(formats)} is for translators and language models. "
                f"Received: --task={self.name}. Leave it out."
            )
        if keras.backend.backend() != "tensorflow" or not (self.portable and values["release"]):
            self.portable = []
        for form in self.portable:
            from keras_transformer.inference.portable_export import require_packages

            # They are needed after the training: an error must come before it.
            require_packages(form)

    def refuse_format(self, form: str, model: keras.Model, folder: RunFolder) -> None:
        """Refuse, before the training, one of `--export_formats` that this model cannot have."""
        from keras_transformer.inference import portable_export

        module = self.module_class.of_model(model, folder, self.values)
        portable_export.refuse(module, form)
        portable_export.require_operations(module, form, folder.path)

    @classmethod
    def default_model_dir(cls, values: Mapping) -> str:
        """Return the run's folder if `--model_dir` names none."""
        return f"runs/{cls.name}"

    def write_files(self, folder: RunFolder) -> None:
        """Write the files that the run needs besides weights, such as a vocabulary.

        Called once for a new run, by one host. By default there are none.
        """
        return

    def read_files(self, folder: RunFolder) -> None:
        """Read the files of `write_files`. Called by every host, before anything else."""
        return

    @abc.abstractmethod
    def description(self) -> dict[str, dict]:
        """Describe the run, in parts, for its `model.json`."""

    def reported(self) -> dict[str, str]:
        """Return what a resumed run prints if it has changed, by name."""
        return {}

    @classmethod
    def fixed(cls, description: dict) -> dict:
        """Return the parts of a run's description that must not change when it is resumed, by
        default all. A description of an earlier version may lack parts.
        """
        return description

    @abc.abstractmethod
    def introduce(self) -> None:
        """Print what is trained on."""

    @abc.abstractmethod
    def examples(self, split: str) -> Examples:
        """Return the examples of "train", to train on, or "valid", to measure after each epoch."""

    def example_weights(self) -> np.ndarray | None:
        """Return how often each example comes in an epoch, (examples,); None: once."""
        return None

    def start(self, model: keras.Model) -> None:
        """Set the weights of a new run that do not start at random; by default there are none.

        Called by every host for a new run without `--init_from`. All must set the same values.
        """
        return

    def loss(self) -> keras.losses.Loss:
        """Return the loss; its `call` gives a loss for each label, float32 of the labels' shape."""
        return LabelSmoothedCrossEntropy(self.values["label_smoothing"])

    def objective(self) -> Objective:
        """Return the terms that a batch adds to the loss that is minimized."""
        alpha = self.values["r_drop"]
        return RDrop(alpha) if alpha else LIKELIHOOD

    def validation(self, model: keras.Model, batches: Callable) -> Callable[[], dict[str, float]]:
        """Make the function that returns a model's measures by name after each epoch, by default
        cross-entropy and accuracy. The model is float32, and its weights are set before each call.
        `batches` returns the validation examples as `model.evaluate` takes them.
        """
        measures = label_measures(model, batches)
        return (lambda: with_perplexity(measures())) if self.measures_perplexity else measures

    @classmethod
    def reload(cls, folder: RunFolder, values: Mapping) -> ServedModule:
        """Load the module of a run's folder, to score or export it. Values as in
        `ServedModule.of_model`, with the "precision" of the weights, by default float32. A
        ValueError refuses a run that does not describe its model, or a damaged file.
        """
        return module_of_run(folder, values, cls.module_class)

    @abc.abstractmethod
    def score(self, module: ServedModule) -> Score:
        """Score the trained model on the test set."""

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
        """Export a version in a format, "saved_model" or one that runs without TensorFlow, into a
        folder. Arguments and result as of `inference.portable_export.export`. A SavedModel has the
        precision of its module.
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
        """Return the text that exports with rounded weights are measured on, if there is any."""
        return None

    @classmethod
    def convert(cls, folder: RunFolder, path: pathlib.Path, values: Mapping) -> pathlib.Path:
        """Write a run's model in the `--format` of `values`, if this task has another than
        SavedModel. Return where it was written.
        """
        raise ValueError(
            f"--format={values['format']} is no format of the task {cls.name}. Leave it out."
        )


def with_perplexity(numbers: Mapping[str, float]) -> dict[str, float]:
    """Add the perplexity, exp(cross-entropy) or infinity, to the numbers of `label_measures`."""
    cross_entropy = numbers["cross_entropy"]
    return {"cross_entropy": cross_entropy, "perplexity": perplexity(cross_entropy), **numbers}
