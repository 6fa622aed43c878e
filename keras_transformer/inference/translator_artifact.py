"""What is exported of a translator: strings in, strings out."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_transformer.inference.signatures import served
from keras_transformer.inference.translation_module import TranslationModule
from keras_transformer.saved_models.artifact import Artifact
from keras_transformer.saved_models.golden import golden_texts
from pipelines import vocabularies


class TranslatorArtifact(Artifact):
    """A `TranslationModule` with the signatures of `served`, and its vocabulary.

    Args:
        module: the `TranslationModule`.

    Attributes:
        does: what goes in and what comes out, in words.
    """

    does = "strings in, strings out"

    def __init__(self, module: TranslationModule):
        super().__init__(module)
        self.what = f"{module.what} of keras_transformer: {self.does}."
        self._signatures = served(module)

    @property
    def weights(self):
        return self.module.weights

    def signatures(self):
        return self._signatures

    def golden_inputs(self, examples):
        texts = golden_texts(self.module.vocabulary.source.pieces, examples)
        return [{"text": np.array(text, dtype=object)} for text in texts]

    def facts(self):
        vocabulary = self.module.vocabulary
        options = dataclasses.asdict(self.module.options)
        return {
            "vocabulary": {"pieces": vocabulary.size, "fingerprint": vocabulary.fingerprint},
            "decoding": {name: value for name, value in options.items() if value is not None},
        }

    def title(self, card):
        return f"A translator, {_languages(card)}"

    def rows(self, card):
        corpus = card.get("corpus", {})
        return {
            "languages": _languages(card),
            "trained on": corpus.get("dataset")
            or corpus.get("data_dir")
            or corpus.get("name", "unknown"),
            **self.score_rows(card.get("scores")),
            "decoding": ", ".join(f"{name} {value}" for name, value in card["decoding"].items()),
            "vocabulary": f"{card['vocabulary']['pieces']:,} pieces, "
            f"{card['vocabulary']['fingerprint']}",
        }

    def score_rows(self, scores: Mapping | None) -> dict[str, str]:
        """What the table in the README says of the test set, by heading.

        Args:
            scores: of the card; None if the run was not scored.
        """
        if not scores:
            return {"test set": "unknown", "signature of BLEU": "unknown"}
        return {
            "test set": f"BLEU {scores['bleu']}, chrF {scores['chrf']} ({scores['weights']})",
            "signature of BLEU": scores.get("bleu_signature", "unknown"),
        }

    def write_files(self, folder):
        """Write the vocabulary: with it, another model can be trained from this one."""
        vocabularies.save(self.module.vocabulary, folder)


def _languages(card):
    corpus = card.get("corpus")
    return f"{corpus['source_language']} to {corpus['target_language']}" if corpus else "unknown"
