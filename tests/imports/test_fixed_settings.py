"""Settings of config.json with which a model computes something else than ours are refused."""

import pytest

from keras_transformer.imports import bert, gpt2, t5

SIZES = {
    "bert": {
        "vocab_size": 9,
        "num_hidden_layers": 1,
        "hidden_size": 4,
        "intermediate_size": 4,
        "num_attention_heads": 2,
        "max_position_embeddings": 4,
    },
    "gpt2": {"vocab_size": 9, "n_layer": 1, "n_embd": 4, "n_head": 2, "n_positions": 4},
    "t5": {"vocab_size": 9, "num_layers": 1, "d_model": 4, "d_kv": 2, "d_ff": 4, "num_heads": 2},
}
FAMILIES = {"bert": bert, "gpt2": gpt2, "t5": t5}
GUESSER = {"architectures": ["BertForMaskedLM"]}


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
        ("t5", "tie_word_embeddings", True),
    ],
)
def test_a_setting_that_changes_the_logits_is_refused_by_name(family, name, is_ours):
    config = SIZES[family] | (GUESSER if family == "bert" else {})
    of_json = {True: "true", False: "false"}
    with pytest.raises(
        ValueError,
        match=rf"^`{name}` of config\.json must be {of_json[is_ours]}: we have no .*\. Import "
        rf"another model\. Received: {of_json[not is_ours]}\.$",
    ):
        FAMILIES[family].model({**config, name: not is_ours})


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("gpt2", gpt2.WANTED),
        ("bert", GUESSER | bert.WANTED | bert.WANTED_OF_PIECES),
        # Without a head that guesses pieces the setting changes nothing.
        ("bert", {"tie_word_embeddings": False}),
    ],
)
def test_control_our_own_settings_are_taken(family, settings):
    assert FAMILIES[family].model({**SIZES[family], **settings}).count_params()


def test_our_settings_are_the_defaults_of_transformers():
    """So a config.json that does not name them has them."""
    transformers = pytest.importorskip("transformers", reason="install the extra [oracles]")
    for config, wanted in (
        (transformers.GPT2Config(), gpt2.WANTED),
        (transformers.BertConfig(), bert.WANTED | bert.WANTED_OF_PIECES),
    ):
        assert {name: getattr(config, name) for name in wanted} == wanted
