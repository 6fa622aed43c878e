"""A run's folder: what a model is, its vocabulary, its checkpoints and their average (Vaswani et
al. 2017, section 6.1).

<model_dir>/model.json        sizes, languages, corpus, fingerprint of the vocabulary
<model_dir>/vocabulary.model  SentencePiece
<model_dir>/checkpoints/      the last K, whole states
<model_dir>/averaged.npz      the weights that are scored and served
<model_dir>/best.npz          those of the best epoch, with --keep_best
<model_dir>/history.jsonl     losses and BLEU after each epoch
<model_dir>/evaluation.json   the final scores
<model_dir>/examples.json     sentences of the test set, that exports are checked with
<model_dir>/logs/             TensorBoard's
"""

import json
import pathlib

from keras_transformer.models import Hyperparameters, Transformer, translation_policy
from keras_transformer.training import checkpoint
from pipelines.vocabulary import Vocabulary
from pipelines.whole_files import write_json


class RunFolder:
    """The paths of a run, and what reads them.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.description = self.path / "model.json"
        self.vocabulary = self.path / "vocabulary.model"
        self.checkpoints = self.path / "checkpoints"
        self.averaged = self.path / "averaged.npz"
        self.best = self.path / "best.npz"
        self.history = self.path / "history.jsonl"
        self.evaluation = self.path / "evaluation.json"
        self.examples = self.path / "examples.json"
        self.logs = self.path / "logs"

    @property
    def is_started(self):
        """Whether the run has saved anything that another run would spoil."""
        return bool(checkpoint.checkpoints(self.checkpoints))

    def describe(self, description):
        """Write what the run is; refuse to go on with a run that is something else.

        Args:
            description: dictionary with `hyperparameters`, `corpus` and `vocabulary`, each a
                dictionary.

        Raises:
            ValueError: naming each value that differs from the run's.
        """
        if self.is_started:
            _refuse_differences(self.path, self.read_description(), description)
        else:
            write_json(self.description, description)

    def read_description(self):
        """The dictionary that `describe` wrote.

        Raises:
            FileNotFoundError: if the folder holds no run.
            ValueError: if the file is damaged.
        """
        try:
            return json.loads(self.description.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} holds no trained model: there is no "
                                    f"{self.description.name} in it.") from None
        except ValueError as error:
            raise ValueError(f"{self.description} is damaged ({error}).") from error

    def read_scores(self):
        """{"scores": ...} of the last evaluation, or {}."""
        return {"scores": json.loads(self.evaluation.read_text(encoding="utf-8"))} if self.evaluation.exists() else {}

    def read_examples(self):
        """Sentences of the test set, none where the run was never scored."""
        return json.loads(self.examples.read_text(encoding="utf-8")) if self.examples.exists() else []

    def load(self, weights=None, precision="float32"):
        """The trained model and its vocabulary.

        Args:
            weights: a checkpoint to take; by default the averaged weights where there are any, else
                the newest checkpoint's.
            precision: see `translation_policy`.

        Raises:
            FileNotFoundError: if the folder holds no run, or a run without a checkpoint.
            ValueError: if a file is damaged.
        """
        hyperparameters = Hyperparameters(**self.read_description()["hyperparameters"])
        model = Transformer(hyperparameters, dtype=translation_policy(precision))
        checkpoint.load_weights(weights or self.newest_weights(), model)
        return model, Vocabulary.load(self.vocabulary)

    def newest_weights(self):
        """The file with the averaged weights where there is one, else the newest checkpoint that
        can be read.

        Raises:
            FileNotFoundError: if there is neither.
        """
        weights = self.averaged if self.averaged.exists() else checkpoint.newest(self.checkpoints)
        if weights is None:
            raise FileNotFoundError(f"{self.path} holds no checkpoint yet. Train first.")
        return weights


def _refuse_differences(path, before, now):
    differences = [
        f"{name} was {before.get(part, {}).get(name)}, now {value}"
        for part, values in now.items()
        for name, value in values.items()
        if before.get(part, {}).get(name) != value
    ]
    if differences:
        raise ValueError(f"{path} holds another run: {'; '.join(differences)}. Name another "
                         "--model_dir, or delete this one.")


def run_of(weights):
    """The `RunFolder` that a checkpoint lies in.

    Raises:
        FileNotFoundError: if it lies in none.
    """
    for parent in weights.parents[:2]:
        if RunFolder(parent).vocabulary.exists():
            return RunFolder(parent)
    raise FileNotFoundError(f"{weights} lies in no run's folder: its vocabulary.model is "
                            "missing. Name the folder of the run.")
