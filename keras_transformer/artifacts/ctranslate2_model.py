"""The same weights for CTranslate2, a second engine (C++, int8): what a model gives there is what
it gives here.
"""

import importlib
import pathlib

import numpy as np

from keras_transformer.layers import sinusoidal_positions
from pipelines.whole_files import whole_folder, write_json

POSITIONS = 2048


def convert(model, vocabulary, folder, description):
    """Write a folder that `ctranslate2.Translator` loads, whole or not at all.

    It takes and gives pieces. `vocabulary.model` lies beside the weights: SentencePiece turns text
    to pieces and back with it. EOS is put behind each source by CTranslate2 itself.

    Args:
        model: a built `Transformer`.
        vocabulary: the `Vocabulary` it was trained with.
        folder: where to; nothing may be there.
        description: what the model is, the content of `model.json`.

    Returns:
        The path of the folder.

    Raises:
        FileExistsError: if the folder exists.
        ValueError: if the package ctranslate2 is not installed, or for sizes that it has no layers
            for.
    """
    specs = _specs()
    folder = pathlib.Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists. Name another --export_dir, or delete it.")
    specification = _specification(specs, model, vocabulary)
    with whole_folder(folder) as temporary:
        temporary.mkdir()
        specification.save(str(temporary))
        vocabulary.save(temporary / "vocabulary.model")
        write_json(temporary / "model.json", description)
    return folder


def _specs():
    try:
        return importlib.import_module("ctranslate2.specs")
    except ImportError as error:
        raise ValueError(
            "--format=ctranslate2 needs the package: pip install "
            "'keras-transformer-nmt[ctranslate2]'."
        ) from error


def _specification(specs, model, vocabulary):
    sizes = model.hyperparameters
    attention = model.decoder.layers[0].self_attention
    if not attention.d_k == attention.d_v == sizes.d_model // sizes.num_heads:
        raise ValueError(
            "CTranslate2 has heads of d_k = d_v = d_model / num_heads = "
            f"{sizes.d_model // sizes.num_heads}. "
            f"Received: d_k={attention.d_k}, d_v={attention.d_v}. Export a SavedModel."
        )
    specification = specs.TransformerSpec.from_config(
        sizes.num_layers, sizes.num_heads, pre_norm=False
    )
    table = model.embedding.table.numpy()
    positions = np.asarray(sinusoidal_positions(np.arange(POSITIONS), sizes.d_model))
    encoder = specification.encoder
    decoder = specification.decoder
    encoder.embeddings[0].weight = decoder.embeddings.weight = decoder.projection.weight = table
    encoder.position_encodings.encodings = decoder.position_encodings.encodings = positions
    for theirs, ours in zip(
        [*encoder.layer, *decoder.layer],
        [*model.encoder.layers, *model.decoder.layers],
        strict=True,
    ):
        kernels = _kernels(ours.self_attention)
        _set_attention(
            theirs.self_attention,
            [np.concatenate(kernels[:3], axis=1), kernels[3]],
            ours.self_attention_norm,
        )
        if hasattr(ours, "cross_attention"):
            query, key, value, output = _kernels(ours.cross_attention)
            _set_attention(
                theirs.attention,
                [query, np.concatenate([key, value], axis=1), output],
                ours.cross_attention_norm,
            )
        for linear, dense in (
            (theirs.ffn.linear_0, ours.feed_forward.inner),
            (theirs.ffn.linear_1, ours.feed_forward.outer),
        ):
            linear.weight = dense.kernel.numpy().T
            linear.bias = dense.bias.numpy()
        _set_norm(theirs.ffn.layer_norm, ours.feed_forward_norm)
    pieces = list(vocabulary.pieces)
    specification.register_source_vocabulary(pieces)
    specification.register_target_vocabulary(pieces)
    config = specification.config
    config.unk_token, config.bos_token, config.eos_token = pieces[1:4]
    config.decoder_start_token = config.bos_token
    config.add_source_eos = True
    config.layer_norm_epsilon = ours.feed_forward_norm.norm.epsilon
    specification.validate()
    return specification


def _kernels(attention):
    return [
        kernel.numpy()
        for kernel in (
            attention.query_kernel,
            attention.key_kernel,
            attention.value_kernel,
            attention.output_kernel,
        )
    ]


def _set_attention(theirs, kernels, norm):
    """CTranslate2 keeps a matrix as (out, in), Keras as (in, out)."""
    for linear, kernel in zip(theirs.linear, kernels, strict=True):
        linear.weight = kernel.T
    _set_norm(theirs.layer_norm, norm)


def _set_norm(theirs, post_norm):
    theirs.gamma = post_norm.norm.gamma.numpy()
    theirs.beta = post_norm.norm.beta.numpy()
