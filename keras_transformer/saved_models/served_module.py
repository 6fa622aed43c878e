"""What leaves a run: a `tf.Module` that says itself what it may be asked and what its card says.

Formats such as a SavedModel read these, and know no task.
"""

import pathlib
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.models import sizes_of_description
from pipelines import vocabularies

EDGES = (b"", b"  ", b"\xff no UTF-8 \xfe", b"a\tb\x00c", "日本語 😀 “ﬁ”".encode())
SENTENCES = 12
LONGEST_SENTENCE = 400


class ServedModule(tf.Module):
    """A trained model as functions of tensors. All variables that it tracks are counted as its
    parameters. For the README, `what` is one sentence on what it is, `does` what goes in and comes
    out.
    """

    what: str = "A model of keras_transformer."
    does: str

    def _keep(self, model: keras.Model) -> None:
        """Keep a model's sizes and weights."""
        self.hyperparameters = model.hyperparameters
        self.what = f"{model.kind} of keras_transformer: {self.does}."
        # Only the variables are tracked, not the Keras model: with both, an export is twice as big.
        self.weights = [variable.value for variable in model.weights]
        self._paths = [variable.path for variable in model.weights]

    @classmethod
    def build(cls, description: Mapping, dtype) -> keras.Model:
        """Make a new model of a run's description, as `Task.description` gave it, to train, to
        score or to export. It gives logits for the inputs of a batch: of the shape of the labels,
        and one axis more. Only its loss is minimized: `add_loss` and regularizers are not.
        """
        raise NotImplementedError

    @classmethod
    def of_model(cls, model: keras.Model, folder, values: Mapping) -> "ServedModule":
        """What is scored and exported of what `build` made, with the weights of a run, whose files
        may be read, by the values of the flags that `train` or `export` reads.
        """
        raise NotImplementedError

    def functions(self) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
        """What a server may be asked: `tf.function`s by name, each with one input signature.

        Every input and output has the examples of a batch along its first axis. "serving_default"
        is among them, and no output of it has the name of an input.
        """
        raise NotImplementedError

    def golden_inputs(self, examples: Sequence) -> list[dict[str, np.ndarray]]:
        """Choose examples that travel with the export, together with what this module gives for
        them: whether the export still gives that can be asked wherever it runs. Some are what
        `Evaluation.examples` kept of the test set, which may be nothing; there is at least one.

        They are inputs of "serving_default" by name, without the axis of the batch. Inputs that
        other functions alone have may be there too: the export's self-check calls these with them,
        and with whatever has the right dtype where there are none.
        """
        raise NotImplementedError

    def variables_by_path(self) -> dict[str, tf.Variable]:
        """The model's weights by their paths, of a module that has a model: see `_keep`."""
        return dict(zip(self._paths, self.weights, strict=True))

    def facts(self) -> dict:
        """JSON that the `model.json` of an export says besides the run's description."""
        return {}

    def title(self, card: Mapping) -> str:
        """The heading of the README, from `model.json`."""
        return f"A model of the task {card.get('task', 'unknown')}"

    def rows(self, card: Mapping) -> dict[str, str]:
        """What the table in the README says by heading, from `model.json`."""
        return {}

    def write_files(self, folder: pathlib.Path) -> None:
        """Write further files beside the weights. By default there are none."""
        return


class ServedText(ServedModule):
    """One that reads text: its functions take `text`, strings (B,). Its vocabulary, of one language
    or of two, must be as wide as the model's logits. A `model_class` makes a model of its sizes;
    `heading` is that of the README.
    """

    does = "text in"
    heading: str = "A model of text"
    model_class: Callable[..., keras.Model]

    def __init__(self, model, vocabulary, name: str):
        super().__init__(name=name)
        width = model.hyperparameters.vocabulary_size
        if vocabulary.size != width:
            raise ValueError(
                f"`vocabulary` must have the {width} pieces that the model was trained with. "
                f"Received: {vocabulary.size}."
            )
        self.vocabulary = vocabulary
        self._keep(model)

    @classmethod
    def build(cls, description, dtype):
        return cls.model_class(sizes_of_description(description["hyperparameters"]), dtype=dtype)

    def golden_inputs(self, examples):
        texts = golden_texts(self.vocabulary.source.pieces, examples)
        return [{"text": np.array(text, dtype=object)} for text in texts]

    def facts(self):
        vocabulary = self.vocabulary
        return {"vocabulary": {"pieces": vocabulary.size, "fingerprint": vocabulary.fingerprint}}

    def title(self, card):
        return f"{self.heading}, {self.languages(card.get('corpus'))}"

    def languages(self, corpus: Mapping | None) -> str:
        """The language that the model reads, in words."""
        return corpus["source_language"] if corpus else "unknown language"

    def rows(self, card):
        corpus = card.get("corpus", {})
        said = {name: value for name, value in card.get("decoding", {}).items() if value != ()}
        decoding = [f"{name} {value}" for name, value in said.items()]
        vocabulary = card["vocabulary"]
        return {
            "trained on": corpus.get("dataset")
            or corpus.get("data_dir")
            or corpus.get("name", "unknown"),
            **self.score_rows(card.get("scores") or {}),
            **({"decoding": ", ".join(decoding)} if decoding else {}),
            "vocabulary": f"{vocabulary['pieces']:,} pieces, {vocabulary['fingerprint']}",
        }

    def score_rows(self, scores: Mapping) -> dict[str, str]:
        """What the table in the README says of the test set; `scores` is empty without a score."""
        measured = [f"{name} {value}" for name, value in scores.items() if name != "split"]
        return {"test set": ", ".join(measured) or "unknown"}

    def write_files(self, folder):
        """Write the vocabulary: with it, another model can be trained from this one."""
        vocabularies.save(self.vocabulary, folder)


def golden_texts(pieces: Sequence[str], examples: Sequence[str]) -> list[bytes]:
    """Choose golden texts: some of the test set, and some that real text seldom has. Where there
    are no examples, sentences are made of the vocabulary's pieces.
    """
    fitting = [example for example in examples if 0 < len(example) <= LONGEST_SENTENCE]
    words = [piece[1:] for piece in pieces if piece.startswith("▁") and piece[1:].isalpha()]
    words = words or ["a"]
    made = [
        " ".join(words[(7 * start + 3 * place) % len(words)] for place in range(start + 1))
        for start in range(SENTENCES)
    ]
    return [*(sentence.encode() for sentence in (fitting or made)[:SENTENCES]), *EDGES]
