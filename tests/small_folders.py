"""A small good folder of each kind of model in Hugging Face's layout, without transformers."""

import io
import json

import numpy as np
import pytest
import sentencepiece

from keras_transformer.imports import bert, gpt2, m2m_100, marian_mt, t5, vit
from pipelines.json_files import settings
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies.word_pieces import SPECIAL

PIECES = [*SPECIAL, "turn", "on", "the", "lamp", "##s"]
SIZES = {"num_hidden_layers": 1, "hidden_size": 4, "intermediate_size": 6}
SIZES["num_attention_heads"] = 2
BERT = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "vocab_size": len(PIECES),
    "max_position_embeddings": 8,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "id2label": {"0": "a", "1": "b"},
    **SIZES,
}
VIT = {"model_type": "vit", "image_size": 4, "patch_size": 2, "num_channels": 3, **SIZES}
GPT2 = {"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 2, "n_positions": 4}
T5 = {"model_type": "t5", "num_layers": 1, "d_model": 4, "d_kv": 2, "d_ff": 4, "num_heads": 2}
SIDES = ("encoder", "decoder")


def translator(d_model, d_ff, **layers):
    """Sizes of a translator, as transformers names them."""
    sizes = {"layers": 1, "ffn_dim": d_ff, "attention_heads": 2}
    both = {f"{side}_{name}": size for side in SIDES for name, size in sizes.items()}
    return {"d_model": d_model, **both, **layers}


TRANSLATOR = translator(4, 6)
MARIAN = {**TRANSLATOR, "model_type": "marian", "vocab_size": 9, "pad_token_id": 8}
MARIAN |= {"eos_token_id": 0, "decoder_start_token_id": 8}
CONFIGS = {
    bert: BERT,
    vit: VIT,
    gpt2: {**GPT2, "vocab_size": 9},
    t5: {**T5, "vocab_size": 9},
    marian_mt: MARIAN,
    m2m_100: {**TRANSLATOR, "model_type": "m2m_100", "vocab_size": 40},
}
MEANS = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_normalize": True}
VECTORS = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
VECTORS += [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "st.models.Pooling"}]
TOKENIZER = {
    "model": {"type": "WordPiece", "vocab": {piece: n for n, piece in enumerate(PIECES)}},
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
}

TEXTS = {
    "source.spm": ["no red cats run", "a red cat ran home", "no cats at home"] * 8,
    "target.spm": ["keine roten Katzen", "eine rote Katze lief", "nein, Katzen"] * 8,
}


def learned(lines, size=30, **ids):
    """A SentencePiece model as OPUS-MT learns one, or with other ids of special pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **ids,
    )
    return model.getvalue()


def logits_of(module, order, sentences, targets):
    """An imported translator's logits after targets of the original's ids; `order` has these in the
    order of ours. The start, which theirs has not, is left out.
    """
    import tensorflow as tf
    from small_model import eagerly

    ids = np.array([[order.index(token) for token in row] for row in targets])
    ids[:, 0] = BOS
    with eagerly():
        source = module.source_ids(tf.constant(sentences)).to_tensor(default_value=PAD)
        logits = module._graphs.model((source, tf.constant(ids))).numpy()
    assert (logits[..., BOS] < -50).all()
    return np.delete(logits[..., : len(order)], BOS, axis=-1)


def config_of(family, document):
    """A family's config of a JSON object."""
    return settings(family.Config, document, "config.json", "Correct it.")[0]


def tensors_of(family, document):
    """Random weights of all sizes, by the names of a file."""
    random = np.random.default_rng(1)
    table = family.table(config_of(family, document))
    sizes = {weight.theirs: weight.shape for weight in table if weight.theirs}
    return {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}


def write(folder, family=bert, **changes):
    """Write a whole folder; returns it."""
    document = {**CONFIGS[family], **changes}
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(document))
    safetensors = pytest.importorskip("safetensors.numpy", reason="install the extra [imports]")
    safetensors.save_file(tensors_of(family, document), folder / "model.safetensors")
    if family is bert:
        (folder / "vocab.txt").write_text("\n".join(PIECES))
    if family is marian_mt:
        ids = {piece: number for number, piece in enumerate(["</s>", "<unk>", *"abcdef", "<pad>"])}
        (folder / "vocab.json").write_text(json.dumps(ids))
        for name, lines in TEXTS.items():
            (folder / name).write_bytes(learned(lines))
    if family is m2m_100:
        (folder / m2m_100.SPM).write_bytes(learned(TEXTS["source.spm"]))
        languages = {"additional_special_tokens": ["deu_Latn", "eng_Latn"], "tgt_lang": "deu_Latn"}
        (folder / m2m_100.TOKENIZER).write_text(json.dumps(languages))
    if family is vit:
        (folder / "preprocessor_config.json").write_text(json.dumps(MEANS))
    return folder


def change(folder, name="config.json", **changes):
    """Set keys of a JSON object in a file."""
    path = folder / name
    document = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**document, **changes}))
