"""What pictures read of the model that `--model` names."""

import pathlib
from collections.abc import Callable, Mapping

import tensorflow as tf

from keras_transformer.inference.live import as_pieces
from keras_transformer.inference.loading import OF_SENTENCES, saved_model
from keras_transformer.inference.trained import load_trained
from keras_transformer.inference.translator import Translator
from keras_transformer.models import Transformer
from keras_transformer.runs.folder import RunFolder, run_of
from keras_transformer.runs.task_name import task_of
from keras_transformer.visualization.attended import Attended, attended
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary


def attended_by(
    model: str,
    attend_of: Callable[[str], Callable[..., dict] | None],
    line: str | None,
    translation: str | None,
    stack: str | None,
    by_pieces: bool,
    options: Mapping,
) -> Attended:
    """What a model attends to while it translates a line, or reads it.

    Args:
        model: a run's folder, a checkpoint or a SavedModel.
        attend_of: `tasks.attending.attend_of`.
        line: the sentence.
        translation: its translation; None: the model's own, which is printed.
        stack, by_pieces: as in `attended`.
        options: arguments of `DecodingOptions`, by which the model translates.

    Raises:
        ValueError: if the line is empty, the model gives no attention, or does not take an option.
    """
    line = required_line(line)
    if attend := attend_of(model):
        return attended(_of_one_text(attend(text=tf.constant([line]))), stack, by_pieces)
    translator = Translator.load(model, **options)
    if translation is None:
        [translation] = translator.translate([line])
        print(translation)
    return attended(translator.attention(line, translation), stack, by_pieces)


def _of_one_text(given):
    """What `attended` takes, of what "attend" gives for one text."""
    [pieces] = as_pieces(given["pieces"].numpy())
    [stack] = given.keys() - {"pieces"}
    return {stack: given[stack][0].numpy(), "source_pieces": pieces, "target_pieces": pieces}


def required_line(line: str | None) -> str:
    """The sentence of --line.

    Raises:
        ValueError: if it is missing or blank.
    """
    if not (line and line.strip()):
        raise ValueError(
            f"--line must hold the sentence to look at. Received: --line={line or ''!r}. Try "
            '--line="Turn off the lights."'
        )
    return line


def folder_of(model: str, picture: str) -> RunFolder:
    """The run's folder that --model names, or that the checkpoint which it names lies in.

    Raises:
        FileNotFoundError: if there is nothing, or no run.
        ValueError: if it is a SavedModel.
    """
    path = pathlib.Path(model)
    if saved_model(path):
        raise ValueError(
            f"--picture={picture} needs the weights and settings of a run. Received: {model}, a "
            "SavedModel. Name the run's folder, such as runs/home_assistant_en_de."
        )
    folder = run_of(path) if _is_checkpoint(path) else RunFolder(path)
    folder.read_description()
    return folder


def run_of_pairs(model: str, picture: str) -> RunFolder:
    """The folder of a run that learned from pairs of sentences.

    Raises:
        as `folder_of`; and ValueError if it is of another task.
    """
    folder = folder_of(model, picture)
    task = task_of(folder.read_description())
    if task not in OF_SENTENCES:
        raise ValueError(
            f"--picture={picture} needs a run of one of the tasks {', '.join(OF_SENTENCES)}. "
            f"Received: {model}, of the task {task}. Try --picture=curves."
        )
    return folder


def trained_model(
    model: str, picture: str
) -> tuple[Transformer, Vocabulary | SeparateVocabularies, Mapping]:
    """The model of a run, its vocabulary, and the run's description.

    Raises:
        as `run_of_pairs`; and ValueError if it is no Transformer.
    """
    folder = run_of_pairs(model, picture)
    path = pathlib.Path(model)
    weights = path if _is_checkpoint(path) else None
    loaded, vocabulary = load_trained(folder, weights)
    if not isinstance(loaded, Transformer):
        raise ValueError(
            f"--picture={picture} needs a Transformer's heads and positions. Received: {model}, of "
            f"architecture={loaded.hyperparameters.architecture}. Try --picture=alignment."
        )
    return loaded, vocabulary, folder.read_description()


def _is_checkpoint(path):
    return path.suffix == ".npz"
