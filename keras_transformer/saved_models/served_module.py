"""The form in which a model leaves a run: a `tf.Module` with its functions for a server, its golden
examples and its card. Formats such as a SavedModel read only these, and know no task.
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
    parameters. For the README, `summary` is a sentence on the model, `does` names what goes in and
    comes out.
    """

    summary: str = "A model of keras_transformer."
    does: str

    def _keep(self, model: keras.Model) -> None:
        """Keep a model's sizes and weights."""
        self.hyperparameters = model.hyperparameters
        self.summary = f"{model.kind} of keras_transformer: {self.does}."
        # Track only the variables. With the Keras model too, an export is twice as big.
        self.weights = [variable.value for variable in model.weights]
        self._paths = [variable.path for variable in model.weights]

    @classmethod
    def build(cls, description: Mapping, dtype) -> keras.Model:
        """Build a new model from a run's description (`Task.description`), to train, to score or to
        export. It maps the inputs of a batch to logits, with one axis more than the labels. Only
        the loss of the logits is minimized: `add_loss` and regularizers have no effect.
        """
        raise NotImplementedError

    @classmethod
    def of_model(cls, model: keras.Model, folder, values: Mapping) -> "ServedModule":
        """Wrap a model that `build` made, with the weights of a run, to score and export it.
        `folder` is the run's `RunFolder`, `values` those of the flags of `train` or `export`.
        """
        raise NotImplementedError

    def functions(self) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
        """Return the `tf.function`s that a server may call, by name, each with one input signature.

        Every input and output has the examples of a batch along its first axis. "serving_default"
        is among the functions, and none of its outputs has the name of an input.
        """
        raise NotImplementedError

    def golden_inputs(self, examples: Sequence) -> list[dict[str, np.ndarray]]:
        """Choose the inputs of golden examples, at least one. They travel with the export, together
        with this module's outputs for them, so that the export can be checked wherever it runs.
        `examples` are those that `Evaluation.examples` kept of the test set, possibly none.

        Each is inputs of "serving_default" by name, without the batch axis. It may also have inputs
        of other functions: the self-check of the export calls these with them, and fills those that
        are missing with any array of the right dtype.
        """
        raise NotImplementedError

    def variables_by_path(self) -> dict[str, tf.Variable]:
        """Return the model's weights by their paths, if the module has a model: see `_keep`."""
        return dict(zip(self._paths, self.weights, strict=True))

    def facts(self) -> dict:
        """Return what the export's `model.json` has in addition to the run's description."""
        return {}

    def title(self, card: Mapping) -> str:
        """Return the heading of the README, from `model.json`."""
        return f"A model of the task {card.get('task', 'unknown')}"

    def rows(self, card: Mapping) -> dict[str, str]:
        """Return the rows of the table in the README, by heading, from `model.json`."""
        return {}

    def write_files(self, folder: pathlib.Path) -> None:
        """Write further files beside the weights; by default none."""
        return


class ServedText(ServedModule):
    """A model that reads text: its functions take `text`, strings (B,). Its vocabulary, of one or
    two languages, must have as many pieces as the model has logits. `model_class` makes a model
    from its sizes; `heading` begins the README.
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
        """Return the language that the model reads, in words."""
        return corpus["source_language"] if corpus else "unknown language"

    def rows(self, card):
        corpus = card.get("corpus", {})
        options = card.get("decoding", {}).items()
        decoding = [f"{name} {value}" for name, value in options if value != ()]
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
        """Return the rows on the test set in the README's table; `scores` may be empty."""
        measured = [f"{name} {value}" for name, value in scores.items() if name != "split"]
        return {"test set": ", ".join(measured) or "unknown"}

    def write_files(self, folder):
        """Write the vocabulary: with it, another model can be trained from this one."""
        vocabularies.save(self.vocabulary, folder)


def golden_texts(pieces: Sequence[str], examples: Sequence[str]) -> list[bytes]:
    """Choose golden texts: some of the test set, and some that are rare in real text. If there are
    no examples, make sentences of the vocabulary's pieces.
    """
    fitting = [example for example in examples if 0 < len(example) <= LONGEST_SENTENCE]
    words = [piece[1:] for piece in pieces if piece.startswith("▁") and piece[1:].isalpha()]
    words = words or ["a"]
    sentences = [
        " ".join(words[(7 * start + 3 * place) % len(words)] for place in range(start + 1))
        for start in range(SENTENCES)
    ]
    return [*(text.encode() for text in (fitting or sentences)[:SENTENCES]), *EDGES]
