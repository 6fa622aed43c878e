"""Load the run, or the model of a run, that a picture needs."""

from keras_transformer.inference.loading import require_sentences
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import ModelPath


def run_of(model: str, picture: str) -> RunFolder:
    """Return the folder of a run, or of a checkpoint's run."""
    path = ModelPath.of(model)
    if path.version:
        raise ValueError(
            f"--picture={picture} needs the weights, settings or history of a run. Received: "
            f"{model}, a SavedModel. Name the run's folder, such as runs/home_assistant_en_de."
        )
    return path.run


def run_of_pairs(model: str, picture: str) -> RunFolder:
    """Return the folder of `run_of`, of a run that learned from sentence pairs."""
    folder = run_of(model, picture)
    subject = f"--picture={picture}: {model}"
    require_sentences(folder.read_description(), subject, "Try --picture=curves.")
    return folder


def trained_model(model: str, picture: str) -> tuple:
    """Load the `Transformer` of a run or checkpoint, its vocabulary and the run's description."""
    from keras_transformer.inference.loading import load_trained
    from keras_transformer.models import Transformer

    folder = run_of_pairs(model, picture)
    loaded, vocabulary = load_trained(folder)
    if not isinstance(loaded, Transformer):
        raise ValueError(
            f"--picture={picture} needs a Transformer's heads and positions. Received: {model}, of "
            f"architecture={loaded.hyperparameters.architecture}. Try --picture=alignment."
        )
    return loaded, vocabulary, folder.read_description()
