"""What is exported of an encoder-only model: texts in; vectors, masked words or labels out."""

import numpy as np

from keras_transformer.inference.tag_module import TagModule
from keras_transformer.inference.text_encoder_module import (
    LabelModule,
    MaskedTextModule,
    TextEncoderModule,
)
from keras_transformer.saved_models.artifact import Artifact
from keras_transformer.saved_models.golden import golden_texts
from pipelines import vocabularies


class TextEncoderArtifact(Artifact):
    """A `TextEncoderModule` with the signature `embed`, and its vocabulary.

    Args:
        module: the module.

    Attributes:
        does: what goes in and what comes out, in words.
        heading: of the README.
    """

    does = "texts in, vectors of length 1 out"
    heading = "A text encoder"

    def __init__(self, module: TextEncoderModule):
        super().__init__(module)
        self.what = f"{module.what} of keras_transformer: {self.does}."

    @property
    def weights(self):
        return self.module.weights

    def signatures(self):
        return self.module.functions()

    def golden_inputs(self, examples):
        texts = golden_texts(self.module.vocabulary.pieces, examples)
        return [{"text": np.array(text, dtype=object)} for text in texts]

    def facts(self):
        vocabulary = self.module.vocabulary
        return {"vocabulary": {"pieces": vocabulary.size, "fingerprint": vocabulary.fingerprint}}

    def title(self, card):
        corpus = card.get("corpus")
        return f"{self.heading}, {corpus['source_language'] if corpus else 'unknown language'}"

    def rows(self, card):
        corpus = card.get("corpus", {})
        scores = card.get("scores", {})
        measured = [f"{name} {value}" for name, value in scores.items() if name != "split"]
        return {
            "trained on": corpus.get("dataset")
            or corpus.get("data_dir")
            or corpus.get("name", "unknown"),
            "test set": ", ".join(measured) or "unknown",
            "vocabulary": f"{card['vocabulary']['pieces']:,} pieces, "
            f"{card['vocabulary']['fingerprint']}",
        }

    def write_files(self, folder):
        """Write the vocabulary: with it, another model can be trained from this one."""
        vocabularies.save(self.module.vocabulary, folder)


class MaskedTextArtifact(TextEncoderArtifact):
    """A `MaskedTextModule`:

    serving_default  text (B,) -> filled (B,)
    fill_mask        text -> filled (B,), pieces and probabilities (B, M, 10)
    embed            text -> vector (B, d_model)
    attend           text -> pieces (B, T), encoder (B, N, h, T, T)
    """

    does = "texts with hidden words in, the words out"
    heading = "A masked language model"

    def __init__(self, module: MaskedTextModule):
        super().__init__(module)

    def facts(self):
        return {**super().facts(), "mask": self.module.vocabulary.marks.name}


class LabelArtifact(TextEncoderArtifact):
    """A `LabelModule`:

    serving_default, classify  text (B,) -> label (B,), labels and probabilities (B, C)
    embed                      text -> vector (B, d_model)
    attend                     text -> pieces (B, T), encoder (B, N, h, T, T)
    """

    does = "texts in, labels out"
    heading = "A text classifier"

    def __init__(self, module: LabelModule):
        super().__init__(module)

    def facts(self):
        return {
            **super().facts(),
            "labels": {"names": self.module.labels, "pooling": self.module.pooling},
        }


class TagArtifact(TextEncoderArtifact):
    """A `TagModule`:

    serving_default  text (B,) -> tags (B,), those of a text in one string
    tag              text -> words, tags and probabilities (B, W)
    embed            text -> vector (B, d_model)
    attend           text -> pieces (B, T), encoder (B, N, h, T, T)
    """

    does = "texts in, a tag for each word out"
    heading = "A tagger"

    def __init__(self, module: TagModule):
        super().__init__(module)

    def facts(self):
        return {**super().facts(), "labels": {"names": self.module.labels}}
