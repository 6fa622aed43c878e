"""A `.keras` file names its classes as Keras knows them. These names stay when a class moves."""

import importlib
import pathlib

import keras
import pytest

import keras_transformer

ROOT = pathlib.Path(keras_transformer.__file__).parent
CLASSES = {
    "layers": [
        *("Additive", "Conv1D", "ConvolutionBlock", "ConvolutionalDecoder", "ConvolutionalEncoder"),
        *("Decoder", "DecoderLayer", "Dense", "DotProduct", "Dropout", "Encoder", "EncoderLayer"),
        *("FeedForward", "FirstState", "GatedFeedForward", "LayerNormalization"),
        *("LearnedEncoding", "LinearBias", "LinearHeads", "LocalHeads", "LowRankHeads"),
        *("MeanState", "RecurrentEncoder"),
        *("MultiHeadAttention", "MultiStepAttention", "NoEncoding", "NoRelativePositions"),
        *("OrthogonalOfAnyDtype", "PatchEmbedding", "PieceBias", "PiecePrediction", "PostNorm"),
        *("PositionalEmbedding", "PreNorm", "PreRmsNorm", "ProposalHeads", "RecurrentDecoder"),
        *("RelativeBias", "RelativeKeysAndValues", "RmsNormalization", "Rotary"),
        *("HalvesEncoding", "ScaledDotProduct", "SegmentEmbedding", "SinusoidalEncoding"),
        *("SoftmaxHeads", "SparseHeads", "depth_scaled", "gelu", "gelu_tanh", "glorot"),
    ],
    "models": [
        *("BFloat16Weights", "BareTextEncoder", "ConvolutionalTranslator", "LanguageModel"),
        *("MaskedLanguageModel", "RecurrentTranslator", "TextClassifier", "TokenClassifier"),
        *("Transformer", "VisionTransformer"),
    ],
    "training": [
        *("Adafactor", "Adam", "LabelAccuracy", "LabelCount", "LabelCrossEntropy"),
        *("LabelSmoothedCrossEntropy", "Muon", "TransformerSchedule"),
    ],
}
# Classes that had another name when it was first saved.
RENAMED = {"NoRelativePositions": "RelativePositions"}


@pytest.fixture(scope="module", autouse=True)
def _all_modules():
    for room in CLASSES:
        for path in (ROOT / room).rglob("*.py"):
            importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))


@pytest.mark.parametrize("room", CLASSES)
def test_keras_finds_each_class_by_its_saved_name(room):
    for name in CLASSES[room]:
        here = keras.saving.get_registered_object(f"keras_transformer>{name}")
        assert here, name
        assert here.__module__.startswith(f"keras_transformer.{room}.")
        assert getattr(importlib.import_module(here.__module__), RENAMED.get(name, name)) is here


def test_control_no_other_class_is_registered_as_ours():
    ours = {
        name for name in keras.saving.get_custom_objects() if name.startswith("keras_transformer>")
    }
    expected = {f"keras_transformer>{name}" for names in CLASSES.values() for name in names}
    assert ours == expected
