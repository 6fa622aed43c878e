"""A `.keras` file names its classes as Keras knows them. These names stay when a class moves."""

import importlib

import keras
import pytest

CLASSES = {
    "layers.attention": ["MultiHeadAttention"],
    "layers.convolution_block": ["ConvolutionBlock"],
    "layers.convolutional_decoder": ["ConvolutionalDecoder", "MultiStepAttention"],
    "layers.convolutional_encoder": ["ConvolutionalEncoder"],
    "layers.decoder": ["Decoder", "DecoderLayer"],
    "layers.dropout": ["Dropout"],
    "layers.embedding": ["PositionalEmbedding"],
    "layers.encoder": ["Encoder", "EncoderLayer"],
    "layers.feed_forward": ["FeedForward"],
    "layers.gated_feed_forward": ["GatedFeedForward"],
    "layers.heads.linear": ["LinearHeads"],
    "layers.heads.local": ["LocalHeads"],
    "layers.heads.low_rank": ["LowRankHeads"],
    "layers.heads.relative_positions": [
        "NoRelativePositions",
        "RelativeBias",
        "RelativeKeysAndValues",
        "Rotary",
    ],
    "layers.heads.softmax": ["SoftmaxHeads"],
    "layers.heads.sparse": ["SparseHeads"],
    "layers.linear_maps": ["Conv1D", "Dense"],
    "layers.lstm": ["OrthogonalOfAnyDtype"],
    "layers.normalization": ["LayerNormalization", "RmsNormalization"],
    "layers.patches": ["PatchEmbedding"],
    "layers.piece_prediction": ["PieceBias", "PiecePrediction"],
    "layers.pooling": ["FirstState", "MeanState"],
    "layers.position_encodings": ["LearnedEncoding", "NoEncoding", "SinusoidalEncoding"],
    "layers.recurrent_decoder": ["RecurrentDecoder"],
    "layers.recurrent_encoder": ["RecurrentEncoder"],
    "layers.residual": ["PostNorm", "PreNorm", "PreRmsNorm", "depth_scaled", "glorot"],
    "layers.scaled_dot_product": ["Additive", "DotProduct", "ScaledDotProduct"],
    "layers.segment_embedding": ["SegmentEmbedding"],
    "models.bare_text_encoder": ["BareTextEncoder"],
    "models.bfloat16_weights": ["BFloat16Weights"],
    "models.convolutional_translator": ["ConvolutionalTranslator"],
    "models.language_model": ["LanguageModel"],
    "models.masked_language_model": ["MaskedLanguageModel"],
    "models.recurrent_translator": ["RecurrentTranslator"],
    "models.text_classifier": ["TextClassifier", "TokenClassifier"],
    "models.transformer": ["Transformer"],
    "layers.activations": ["gelu", "gelu_tanh"],
    "models.vision": ["VisionTransformer"],
    "training.label_metrics": ["LabelAccuracy", "LabelCount", "LabelCrossEntropy"],
    "training.loss": ["LabelSmoothedCrossEntropy"],
    "training.optimizer": ["Adafactor", "Adam", "Muon"],
    "training.schedule": ["TransformerSchedule"],
}


# Classes that had another name when it was first saved.
RENAMED = {"NoRelativePositions": "RelativePositions"}


def class_of(module, name):
    found = importlib.import_module(f"keras_transformer.{module}")
    return getattr(found, RENAMED.get(name, name))


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in CLASSES.items() for name in names]
)
def test_keras_finds_each_class_by_its_saved_name(module, name):
    here = class_of(module, name)
    assert keras.saving.get_registered_object(f"keras_transformer>{name}") is here


def test_control_no_other_class_is_registered_as_ours():
    for module in CLASSES:
        importlib.import_module(f"keras_transformer.{module}")
    ours = {
        name for name in keras.saving.get_custom_objects() if name.startswith("keras_transformer>")
    }
    expected = {f"keras_transformer>{name}" for names in CLASSES.values() for name in names}
    assert ours == expected
