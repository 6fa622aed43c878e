"""What is exported of a language model: the beginning of a text in, more of it out."""

import dataclasses

import numpy as np

from keras_transformer.inference.generation_module import GenerationModule
from keras_transformer.inference.generation_signatures import served
from keras_transformer.saved_models.artifact import Artifact
from keras_transformer.saved_models.golden import golden_texts


class GeneratorArtifact(Artifact):
    """A `GenerationModule` with the signatures of `generation_signatures.served`, and its
    vocabulary.

    Args:
        module: the `GenerationModule`.
    """

    def __init__(self, module: GenerationModule):
        super().__init__(module)
        self.what = f"{module.what} of keras_transformer: the beginning of a text in, the text out."
        self._signatures = served(module)

    @property
    def weights(self):
        return self.module.weights

    def signatures(self):
        return self._signatures

    def golden_inputs(self, examples):
        texts = golden_texts(self.module.vocabulary.pieces, examples)
        return [{"text": np.array(text, dtype=object)} for text in texts]

    def facts(self):
        vocabulary = self.module.vocabulary
        options = dataclasses.asdict(self.module.options)
        return {
            "vocabulary": {"pieces": vocabulary.size, "fingerprint": vocabulary.fingerprint},
            "decoding": {name: value for name, value in options.items() if value is not None},
        }

    def title(self, card):
        corpus = card.get("corpus")
        return f"A language model, {corpus['source_language'] if corpus else 'unknown'}"

    def rows(self, card):
        corpus = card.get("corpus", {})
        scores = card.get("scores")
        measured = "unknown"
        if scores:
            measured = (
                f"perplexity {scores['perplexity']} a piece, {scores['perplexity_of_words']} a "
                f"word ({scores['weights']})"
            )
        return {
            "trained on": corpus.get("dataset")
            or corpus.get("data_dir")
            or corpus.get("name", "unknown"),
            "test set": measured,
            "decoding": ", ".join(f"{name} {value}" for name, value in card["decoding"].items()),
            "vocabulary": f"{card['vocabulary']['pieces']:,} pieces, "
            f"{card['vocabulary']['fingerprint']}",
        }

    def write_files(self, folder):
        """Write the vocabulary: with it, another model can be trained from this one."""
        self.module.vocabulary.save(folder / "vocabulary.model")
