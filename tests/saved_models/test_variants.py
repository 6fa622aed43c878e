"""Exports of each variant of the model: CTranslate2 gives what the model gives, or refuses it; a
SavedModel gives what the live model gives (for the paper's variant: test_saved_model.py).
"""

import random

import numpy as np
import pytest
from drawn_models import Some, random_model
from exports import answers, checks_here
from small_model import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule

SLOW = pytest.mark.slow
VARIANTS = [
    {"norm": "pre", "activation": "gelu"},
    pytest.param({"norm": "post", "activation": "swish"}, marks=SLOW),
    pytest.param({"norm": "post", "activation": "gelu"}, marks=SLOW),
    pytest.param({"norm": "pre", "activation": "relu"}, marks=SLOW),
    pytest.param({"norm": "pre", "activation": "swish"}, marks=SLOW),
    {"activation": "swiglu", "positions": "learned", "max_positions": 4, "tie_embeddings": "none"},
    {"positions": "rotary"},
    pytest.param({"positions": "none"}, marks=SLOW),
    pytest.param({"tie_embeddings": "decoder"}, marks=SLOW),
]
LINES = ["a b c d", "d d", "e a b c d f g", "b"]
REFERENCES = ["d c b a", "d", "g f d c b a e", "c c c"]


def name_of(variant):
    return ",".join(str(value) for value in variant.values())


def log_probabilities(scored):
    return [log_probability for log_probability, _ in scored]


@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
def test_ctranslate2_gives_the_same_log_probabilities_and_translations(pieces, tmp_path, variant):
    model = random_model(**variant, num_layers=2)
    options = DecodingOptions(beam_size=1, max_length=9, min_length=1)
    live = Translator(TranslationModule(model, pieces, options))
    scores, translations = answers(tmp_path / "model", model, pieces, LINES, REFERENCES)
    with eagerly():
        expected = log_probabilities(live.score(LINES, REFERENCES))
        assert translations == live.translate(LINES)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("positions", "relative", "sinusoidal or tensor2tensor or marian_mt or learned or none or"),
        ("attention", "local:4", "scaled_dot_product"),
        ("scaled_embeddings", False, "True"),
    ],
)
def test_a_variant_that_ctranslate2_lacks_is_refused(pieces, tmp_path, name, value, choices):
    pytest.importorskip("ctranslate2")
    with pytest.raises(ValueError) as raised:
        ctranslate2_model.convert(random_model(**{name: value}), pieces, tmp_path / "model", {})
    assert str(raised.value).startswith(f"CTranslate2 knows only {choices}")
    ending = f" as `{name}`. Received: {name}={value!r}. Export a SavedModel."
    assert str(raised.value).endswith(ending)
    assert not (tmp_path / "model").exists()


EXPORTED = [
    {"norm": "pre", "activation": "gelu"},
    {"norm": "pre_rms", "activation": "swish"},
    {"attention": "dot_product", "positions": "relative", "activation": "gelu_tanh"},
    {"attention": "additive"},
    {"attention": "local:3", "positions": "rotary"},
    {"attention": "sparse:3", "positions": "shaw"},
    {"attention": "low_rank:4", "positions": "none"},
    {"attention": "linear", "tie_embeddings": "decoder"},
    {"positions": "learned", "max_positions": 5, "activation": "swiglu", "tie_embeddings": "none"},
]


def test_blocks_give_greedy_translations_live_and_as_a_signature(pieces, tmp_path):
    model = random_model(positions="rotary", block_size=3)
    rules = {"max_length": "+3", "min_length": 1}
    beam, greedy, blocks = (
        TranslationModule(model, pieces, DecodingOptions(**search, **rules))
        for search in ({"beam_size": 2}, {"beam_size": 1}, {"blockwise": True})
    )
    with eagerly():
        details = [Translator(module).translate_in_detail(LINES) for module in (greedy, blocks)]
    expected = [hypotheses[0].text for hypotheses in details[0]]
    # A control: a beam finds other translations.
    assert expected != Translator(beam).translate(LINES)
    assert [hypotheses[0].text for hypotheses in details[1]] == expected
    scores = [[hypotheses[0].score for hypotheses in of_module] for of_module in details]
    np.testing.assert_allclose(*scores, rtol=1e-4)
    with checks_here():
        folder = export(Some(beam, "serving_default", "blockwise"), tmp_path / "m", {}, LINES)
    assert Translator.load(folder, blockwise=True).translate(LINES) == expected
    with pytest.raises(ValueError, match="no scores of blockwise: leave out `blockwise`"):
        Translator.load(folder, blockwise=True).translate_in_detail(LINES)
    with pytest.raises(ValueError, match="`blockwise` needs the heads of a model that was"):
        TranslationModule(random_model(), pieces, DecodingOptions(blockwise=True))


@pytest.mark.slow
@pytest.mark.parametrize("variant", EXPORTED, ids=name_of)
def test_a_saved_model_gives_what_the_live_one_gives(pieces, tmp_path, variant):
    """100 sentences are translated in a batch, and the first five alone."""
    draw = random.Random(2)
    lines = [" ".join(draw.choices("abcdefgh", k=draw.randint(1, 9))) for _ in range(100)]
    options = DecodingOptions(beam_size=2, max_length="+3")
    module = TranslationModule(random_model(**variant), pieces, options)
    with checks_here():
        folder = export(module, tmp_path / "m", {}, lines[:3])
    live, reloaded = Translator(module), Translator.load(folder)
    translations = live.translate(lines)
    assert reloaded.translate(lines) == translations
    assert [reloaded.translate([line])[0] for line in lines[:5]] == translations[:5]
    assert reloaded.translate([]) == []
    assert len(set(translations)) > 20
    scores = [log_probabilities(each.score(LINES, REFERENCES)) for each in (live, reloaded)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-4)
    attention = reloaded.attention(LINES[0], REFERENCES[0])
    assert {len(attention[part].shape) for part in ("encoder", "decoder", "cross")} == {4}
