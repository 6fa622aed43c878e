"""Settings of config.json with which a model computes something else than ours are refused."""

import json

import pytest
from small_folders import CONFIGS, config_of

from keras_transformer.imports import bert, gpt2, m2m_100, marian_mt, t5, vit
from keras_transformer.imports.hugging_face import FAMILIES

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
