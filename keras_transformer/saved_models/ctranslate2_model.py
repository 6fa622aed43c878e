"""Conversion to CTranslate2, a second engine (C++, int8) that gives the same translations."""

import importlib
import pathlib

import numpy as np

from keras_transformer.models import Transformer
from pipelines import needing, vocabularies
from pipelines.special_ids import EOS, UNK
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.other_order import language_labels
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.whole_files import whole_folder, write_json

POSITIONS = 2048
# Our variants in CTranslate2's terms: its `pre_norm`, and the members of its `Activation`.
PRE_NORM = {"post": False, "pre": True}
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH", "swiglu": "SWISH"}
ACTIVATIONS |= {"gelu_tanh": "GELUTanh", "geglu": "GELUTanh"}
GATED = ("swiglu", "geglu")
# CTranslate2's names of what `FeedForward.maps` returns. Only gated networks have the third.
LINEARS = ("linear_0", "linear_1", "linear_0_noact")
# Maps of our attention.
PARTS = ("query", "key", "value", "output")
SUPPORTED = {
    "architecture": ("transformer",),
    "norm": PRE_NORM,
    "activation": ACTIVATIONS,
    # The last turns queries and keys; the others are tables that are added to the embeddings.
    "positions": ("sinusoidal", "tensor2tensor", "marian_mt", "learned", "none", "rotary"),
    "attention": ("scaled_dot_product",),
    "scaled_embeddings": (True,),
}
README = """# A translator for CTranslate2

`ctranslate2.Translator(FOLDER)` takes pieces and gives pieces. With `vocabulary*.model`,
SentencePiece turns text into pieces and back. `model.json` describes the training.
%s"""
SPANS = """
## Protected spans

The model was trained with marks in the place of placeholders, tags and links. CTranslate2's search
does not know of them and may lose or repeat a mark, which the search of the run, of its SavedModel
and of its folder for ONNX or LiteRT cannot. Hide the spans before, and put them back after:

```python
import pathlib

from pipelines.vocabularies.protected_spans import ProtectedSpans, TextMarks

marks = TextMarks(ProtectedSpans.load(pathlib.Path(FOLDER)))
hidden = marks.marked(text)
# Translate `hidden.text` ...
marks.put_back(translation, hidden)
```
"""


def convert(
    model: Transformer,
    vocabulary: Vocabulary | SeparateVocabularies,
    folder: str | pathlib.Path,
    description: dict,
) -> pathlib.Path:
    """Write a folder that `ctranslate2.Translator` loads, whole or not at all.

    CTranslate2 takes and gives pieces. With the vocabulary's files, which lie beside the weights,
    SentencePiece turns text into pieces and back. CTranslate2 itself appends EOS to a source. A
    ValueError says that it does not support the model's sizes, norm, activation, positions or
    attention.
    """
    with needing("ctranslate2", "--format=ctranslate2"):
        specs = importlib.import_module("ctranslate2.specs")
    folder = pathlib.Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists. Name another --export_dir, or delete it.")
    specification = _specification(specs, model, vocabulary)
    if language_labels(vocabulary.target):
        raise ValueError(
            "--format=ctranslate2 has no labels of languages: CTranslate2 takes pieces, and its "
            "users put labels there themselves. Export a SavedModel."
        )
    with whole_folder(folder) as temporary:
        specification.save(str(temporary))
        vocabularies.save(vocabulary, temporary)
        write_json(temporary / "model.json", description)
        (temporary / "README.md").write_text(README % (SPANS if vocabulary.protected else ""))
    if vocabulary.protected:
        print(
            "CTranslate2's own search can lose protected spans. README.md of the folder says how "
            "to hide them and put them back."
        )
    return folder


def _specification(specs, model, vocabulary):
    """Return CTranslate2's description of the model, with its weights."""
    specification = _empty_specification(specs, model)
    _set_embeddings(specification, model)
    for theirs, ours in zip(specification.encoder.layer, model.encoder.layers, strict=True):
        _set_layer(theirs, ours)
    for theirs, ours in zip(specification.decoder.layer, model.decoder.layers, strict=True):
        _set_layer(theirs, ours)
        _set_attention(theirs.attention, ours.cross_attention, (PARTS[:1], PARTS[1:3], PARTS[3:]))
        _set_norm(theirs.attention.layer_norm, ours.cross_attention_norm.norm)
    if PRE_NORM[model.hyperparameters.norm]:
        _set_norm(specification.encoder.layer_norm, model.encoder.final_norm)
        _set_norm(specification.decoder.layer_norm, model.decoder.final_norm)
    specification.register_source_vocabulary(list(vocabulary.source.pieces))
    specification.register_target_vocabulary(list(vocabulary.target.pieces))
    config = specification.config
    config.unk_token, config.bos_token, config.eos_token = vocabulary.target.pieces[UNK : EOS + 1]
    config.decoder_start_token = config.bos_token
    config.add_source_eos = model.hyperparameters.source_end
    config.layer_norm_epsilon = ours.feed_forward_norm.norm.epsilon
    specification.validate()
    return specification


def _empty_specification(specs, model):
    hp = model.hyperparameters
    for name, values in SUPPORTED.items():
        value = getattr(hp, name)
        if value not in values:
            raise ValueError(
                f"CTranslate2 knows only {' or '.join(map(str, values))} as `{name}`. Received: "
                f"{name}={value!r}. Export a SavedModel."
            )
    attention = model.decoder.layers[0].self_attention
    if not attention.d_k == attention.d_v == hp.d_model // hp.num_heads:
        raise ValueError(
            "CTranslate2 has heads of d_k = d_v = d_model / num_heads = "
            f"{hp.d_model // hp.num_heads}. "
            f"Received: d_k={attention.d_k}, d_v={attention.d_v}. Export a SavedModel."
        )
    sizes = {
        "num_heads": hp.num_heads,
        "pre_norm": PRE_NORM[hp.norm],
        "activation": specs.Activation[ACTIVATIONS[hp.activation]],
        "ffn_glu": hp.activation in GATED,
        "rotary_dim": attention.d_k if hp.positions == "rotary" else None,
    }
    stacks = specs.transformer_spec
    return stacks.TransformerSpec(
        stacks.TransformerEncoderSpec(num_layers=len(model.encoder.layers), **sizes),
        stacks.TransformerDecoderSpec(num_layers=len(model.decoder.layers), **sizes),
    )


def _set_embeddings(specification, model):
    encoder = specification.encoder
    decoder = specification.decoder
    encoder.embeddings[0].weight = model.source_embedding.table.numpy()
    decoder.embeddings.weight = model.embedding.table.numpy()
    decoder.projection.weight = model.projection.table.numpy()
    if model.projection.bias is not None:
        decoder.projection.bias = model.projection.bias.numpy()
    for stack, embedding in ((encoder, model.source_embedding), (decoder, model.embedding)):
        # A stack with rotary positions has none.
        if hasattr(stack, "position_encodings"):
            zeros = np.zeros((1, POSITIONS, embedding.d_model), "float32")
            encodings = embedding.encoding.added(zeros, np.arange(POSITIONS)[None])
            stack.position_encodings.encodings = np.asarray(encodings)[0]


def _set_layer(theirs, ours):
    """Set self-attention and feed-forward network, which layers of both stacks have."""
    _set_attention(theirs.self_attention, ours.self_attention, (PARTS[:3], PARTS[3:]))
    _set_norm(theirs.self_attention.layer_norm, ours.self_attention_norm.norm)
    for name, dense in zip(LINEARS, ours.feed_forward.maps(), strict=False):
        linear = getattr(theirs.ffn, name)
        linear.weight = dense.kernel.numpy().T
        if dense.use_bias:
            linear.bias = dense.bias.numpy()
    _set_norm(theirs.ffn.layer_norm, ours.feed_forward_norm.norm)


def _set_attention(theirs, attention, parts):
    """Set an attention's matrices, (in, out) in Keras, as (out, in), with a map's parts joined."""
    for linear, names in zip(theirs.linear, parts, strict=True):
        kernels = [getattr(attention, f"{name}_kernel").numpy() for name in names]
        linear.weight = np.concatenate(kernels, axis=1).T
        if attention.use_bias:
            biases = [getattr(attention, f"{name}_bias").numpy() for name in names]
            linear.bias = np.concatenate(biases)


def _set_norm(theirs, norm):
    theirs.gamma = norm.gamma.numpy()
    theirs.beta = norm.beta.numpy()
