"""Norms and activations in what leaves: a SavedModel and CTranslate2 give what the model gives."""

import numpy as np
import pytest

from keras_transformer.artifacts import ctranslate2_model
from keras_transformer.artifacts.saved_model import export
from keras_transformer.artifacts.translator_artifact import TranslatorArtifact
from keras_transformer.decoding import DecodingOptions
from keras_transformer.models import Transformer
from keras_transformer.translator.translation_module import TranslationModule
from keras_transformer.translator.translator import Translator

VARIANTS = [("post", "gelu"), ("pre", "relu"), ("pre", "gelu"), ("post", "swish"), ("pre", "swish")]
LINES = ["a b c d", "d d", "e a b c d f g", "b"]
REFERENCES = ["d c b a", "d", "g f d c b a e", "c c c"]


def transformer(pieces, norm, activation, **sizes):
    """A model whose weights are drawn: no gain is 1, no bias is 0."""
    small = {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2, **sizes}
    model = Transformer(vocabulary_size=pieces.size, norm=norm, activation=activation, **small)
    random = np.random.default_rng(1)
    model.set_weights(
        [random.normal(np.all(weight == 1), 0.3, weight.shape) for weight in model.get_weights()]
    )
    return model


def translator(model, pieces, **options):
    return Translator(TranslationModule(model, pieces, DecodingOptions(**options)))


def log_probabilities(scored):
    return [log_probability for log_probability, _ in scored]


def test_a_pre_norm_model_with_gelu_leaves_as_a_saved_model(pieces, tmp_path):
    """`export` refuses what does not translate alike in a process of its own."""
    model = transformer(pieces, "pre", "gelu")
    module = TranslationModule(model, pieces, DecodingOptions(beam_size=2, max_length="+4"))
    live = Translator(module)
    description = {
        "hyperparameters": model.hyperparameters.as_dict(),
        "corpus": {"name": "drawn", "source_language": "a", "target_language": "b"},
        "vocabulary": {"fingerprint": pieces.fingerprint},
    }
    path = export(TranslatorArtifact(module), tmp_path / "drawn", description, LINES)
    exported = Translator.load(path)
    assert exported.description["hyperparameters"]["norm"] == "pre"
    assert exported.translate(LINES) == live.translate(LINES)
    expected = log_probabilities(live.score(LINES, REFERENCES))
    np.testing.assert_allclose(
        log_probabilities(exported.score(LINES, REFERENCES)), expected, rtol=1e-5
    )
    ours = live.attention(LINES[0], REFERENCES[0])
    theirs = exported.attention(LINES[0], REFERENCES[0])
    for part in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(theirs[part], ours[part], rtol=0, atol=1e-6)
    post = translator(transformer(pieces, "post", "gelu"), pieces)
    assert np.abs(np.subtract(log_probabilities(post.score(LINES, REFERENCES)), expected)).max() > 1


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


@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_ctranslate2_gives_the_same_log_probabilities_and_translations(pieces, engine_of, variant):
    model = transformer(pieces, *variant)
    live = translator(model, pieces, beam_size=1, max_length=9, min_length=1)
    scores, translations = engine_of(model)
    expected = log_probabilities(live.score(LINES, REFERENCES))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-3)
    assert translations == live.translate(LINES)


def test_control_ctranslate2_with_another_activation_gives_other_ones(
    pieces, engine_of, monkeypatch
):
    model = transformer(pieces, "pre", "gelu")
    expected, _ = engine_of(model)
    monkeypatch.setitem(ctranslate2_model.ACTIVATIONS, "gelu", "SWISH")
    assert np.abs(np.subtract(engine_of(model)[0], expected)).max() > 0.01


@pytest.mark.parametrize(("name", "variant"), [("norm", "pre"), ("activation", "gelu")])
def test_a_variant_that_ctranslate2_has_not_is_refused_in_a_line(
    pieces, tmp_path, monkeypatch, name, variant
):
    known = {"norm": ctranslate2_model.PRE_NORM, "activation": ctranslate2_model.ACTIVATIONS}[name]
    monkeypatch.delitem(known, variant)
    model = transformer(pieces, **{"norm": "post", "activation": "relu", name: variant})
    with pytest.raises(ValueError) as raised:
        ctranslate2_model.convert(model, pieces, tmp_path / "model", {})
    assert str(raised.value) == (
        f"CTranslate2 knows only {' or '.join(known)} as `{name}`. Received: {name}={variant!r}. "
        "Export a SavedModel."
    )
    assert not (tmp_path / "model").exists()
