"""Norms and activations in what leaves: CTranslate2 gives what the model gives. That a SavedModel
does: test_saved_model.py.
"""

import numpy as np
import pytest
from drawn_models import drawn
from eager import eagerly

from keras_transformer.artifacts import ctranslate2_model
from keras_transformer.decoding import DecodingOptions
from keras_transformer.translator.translation_module import TranslationModule
from keras_transformer.translator.translator import Translator

VARIANTS = [
    ("pre", "gelu"),
    ("post", "swish"),
    pytest.param(("post", "gelu"), marks=pytest.mark.slow),
    pytest.param(("pre", "relu"), marks=pytest.mark.slow),
    pytest.param(("pre", "swish"), marks=pytest.mark.slow),
]
LINES = ["a b c d", "d d", "e a b c d f g", "b"]
REFERENCES = ["d c b a", "d", "g f d c b a e", "c c c"]


def transformer(norm, activation):
    return drawn(norm=norm, activation=activation, num_layers=2)


def log_probabilities(scored):
    return [log_probability for log_probability, _ in scored]


@pytest.fixture(scope="module")
def engine_of(pieces, tmp_path_factory):
    """A model in CTranslate2: its log-probabilities and greedy translations of `LINES`."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    sentencepiece = pytest.importorskip("sentencepiece")

    def converted(model):
        folder = tmp_path_factory.mktemp("converted") / "model"
        ctranslate2_model.convert(model, pieces, folder, {})
        split = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
        engine = ctranslate2.Translator(str(folder), compute_type="float32")
        sides = [split.encode(side, out_type=str) for side in (LINES, REFERENCES)]
        scores = [sum(result.log_probs) for result in engine.score_batch(*sides)]
        results = engine.translate_batch(sides[0], beam_size=1, max_decoding_length=8)
        return scores, [split.decode(result.hypotheses[0]) for result in results]

    return converted


@pytest.mark.parametrize("variant", VARIANTS)
def test_ctranslate2_gives_the_same_log_probabilities_and_translations(pieces, engine_of, variant):
    model = transformer(*variant)
    options = DecodingOptions(beam_size=1, max_length=9, min_length=1)
    live = Translator(TranslationModule(model, pieces, options))
    scores, translations = engine_of(model)
    with eagerly():
        expected = log_probabilities(live.score(LINES, REFERENCES))
        assert translations == live.translate(LINES)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-3)


def test_control_ctranslate2_with_another_activation_gives_other_ones(
    pieces, engine_of, monkeypatch
):
    model = transformer("pre", "gelu")
    expected, _ = engine_of(model)
    monkeypatch.setitem(ctranslate2_model.ACTIVATIONS, "gelu", "SWISH")
    assert np.abs(np.subtract(engine_of(model)[0], expected)).max() > 0.01


@pytest.mark.parametrize(("name", "variant"), [("norm", "pre"), ("activation", "gelu")])
def test_a_variant_that_ctranslate2_has_not_is_refused_in_a_line(
    pieces, tmp_path, monkeypatch, name, variant
):
    pytest.importorskip("ctranslate2")
    known = {"norm": ctranslate2_model.PRE_NORM, "activation": ctranslate2_model.ACTIVATIONS}[name]
    monkeypatch.delitem(known, variant)
    model = transformer(**{"norm": "post", "activation": "relu", name: variant})
    with pytest.raises(ValueError) as raised:
        ctranslate2_model.convert(model, pieces, tmp_path / "model", {})
    assert str(raised.value) == (
        f"CTranslate2 knows only {' or '.join(known)} as `{name}`. Received: {name}={variant!r}. "
        "Export a SavedModel."
    )
    assert not (tmp_path / "model").exists()
