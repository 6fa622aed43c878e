"""Of a beam, the hypothesis with the most of the given terms comes first: live, in a SavedModel and
in NumPy. Where it lacks a term and the model protects spans, all terms are put in.
"""

import pytest
from drawn_models import assert_alike, learned, random_model
from small_model import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import portable_export
from keras_transformer.inference.functions import saved_functions
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.signature import as_bytes, as_strings
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.glossary import Glossary
from pipelines.special_ids import EOS
from pipelines.vocabularies.protected_spans import MARKS, ProtectedSpans

BEAM = 6
LETTERS = {*"abcdefgh"}
PIECES = {*LETTERS, *MARKS}
TERMS = {"a": "c", "b": "f", "c": "d", "d": "(\\E", "e": "h"}
TEXTS = ["a b c d", "", "d d", "e a c d f g", "b", "f g", "h h h h a", "e c a"]


def options(model_and_vocabulary, beam_size=BEAM, **more):
    """Each letter is written once, which a model with random weights would repeat."""
    pieces = [piece.strip("▁") for piece in model_and_vocabulary[1].pieces]
    barred = tuple(place for place in range(EOS + 1, len(pieces)) if pieces[place] not in PIECES)
    rules = {"no_repeat_ngram_size": 1, "barred": barred}
    return DecodingOptions(beam_size=beam_size, max_length=7, min_length=4, **rules, **more)


def random_model_and_vocabulary(protected):
    pieces = learned(340, protected=protected)
    return random_model(vocabulary_size=pieces.size), pieces


def test_the_most_terms_come_first_and_then_the_best_score(monkeypatch):
    plain = random_model_and_vocabulary(ProtectedSpans(glossary_rate=0.1))
    glossary = Glossary(TERMS, plain[1].protected)
    lines = [glossary.applied(text) for text in TEXTS]
    module = TranslationModule(*plain, options(plain, num_hypotheses=BEAM))
    translator = Translator(module)
    best = translator.translate(lines)
    assert [translator.translate([line])[0] for line in lines] == best
    with eagerly():
        details = translator.translate_in_detail(lines)
        monkeypatch.setattr(module, "_learned_terms", False)
        by_score = translator.translate_in_detail(lines)
    for text, of_line, usual, first in zip(TEXTS, details, by_score, best, strict=True):
        terms = [translation for term, translation in TERMS.items() if term in text.split()]
        texts = [hypothesis.text for hypothesis in usual]
        texts.sort(key=lambda text: -sum(term in text for term in terms))
        assert [hypothesis.text for hypothesis in of_line] == texts
        assert first == (texts[0] if text else "")
    # A control: the score alone gives others.
    pairs = zip(details, by_score, strict=True)
    differ = [hypotheses[0].text != usual[0].text for hypotheses, usual in pairs]
    assert sum(differ) >= 2
    assert not differ[TEXTS.index("f g")]


WITH_SPANS = [*TEXTS, "a {x} d {y}", "{x} f", "h {x} b", "f h"]
GREEDY = {"beam_size": 1, "num_hypotheses": 1}
# Two more terms: a translation with a span, and one with escapes of regular expressions.
PUT_IN = {**TERMS, "g": "9 {z}", "b": "b\\\\1"}


@pytest.fixture(scope="module")
def protecting():
    return random_model_and_vocabulary(ProtectedSpans(("placeholders",), glossary_rate=0.1))


@pytest.fixture(scope="module")
def marked(protecting):
    glossary = Glossary(PUT_IN, protecting[1].protected)
    return [glossary.applied(text) for text in WITH_SPANS]


@pytest.fixture(scope="module")
def whole(protecting):
    return TranslationModule(*protecting, options(protecting, num_hypotheses=2))


@pytest.fixture(scope="module")
def put_in(whole, marked):
    return Translator(whole).translate(marked)


def lacking(texts):
    """The places of the texts that lack a term."""
    pairs = enumerate(zip(WITH_SPANS, texts, strict=True))
    return [
        place
        for place, (source, text) in pairs
        if any(term in source.split() and PUT_IN[term] not in text for term in PUT_IN)
    ]


def test_each_given_term_appears(protecting, whole, marked, put_in):
    module = TranslationModule(*protecting, options(protecting))
    module._puts_terms_in = False
    with eagerly():
        as_they_came = Translator(module).translate(marked)
    without = lacking(as_they_came)
    assert lacking(put_in) == []
    # A control: without it, several lines lack a term and several do not.
    assert 4 <= len(without) <= len(marked) - 4
    for place, (text, before) in enumerate(zip(put_in, as_they_came, strict=True)):
        assert (text != before) == (place in without)
    translator = Translator(whole)
    assert [translator.translate([line])[0] for line in marked] == put_in
    # As from a model whose terms are put in from the start.
    in_place = Glossary(PUT_IN, ProtectedSpans(("placeholders",)))
    replaced = [in_place.applied(WITH_SPANS[place]) for place in without]
    details = translator.translate_in_detail(marked)
    put_in_later = [details[place] for place in without]
    assert_alike(put_in_later, translator.translate_in_detail(replaced), atol=1e-5)
    assert [of_line[0].text if of_line else "" for of_line in details] == put_in


@pytest.mark.slow
def test_greedy_search_puts_them_in_too_and_a_sample_or_a_prefix_does_not(protecting, marked):
    greedy = Translator(TranslationModule(*protecting, options(protecting, beam_size=1)))
    assert lacking(greedy.translate(marked)) == []
    with_prefixes = greedy.translate(marked, ["e" if text else "" for text in WITH_SPANS])
    assert all(text.startswith("e") for text in with_prefixes if text)
    assert len(lacking(with_prefixes)) >= 4
    drawing = DecodingOptions(samples=1, seed=1, max_length=3)
    assert len(lacking(Translator(TranslationModule(*protecting, drawing)).translate(marked))) >= 4
    free = options(protecting, protect_all=False)
    assert lacking(Translator(TranslationModule(*protecting, free)).translate(marked))


@pytest.mark.slow
def test_blocks_put_in_what_greedy_search_does(protecting, marked):
    pieces = protecting[1]
    model = random_model(vocabulary_size=pieces.size, block_size=3, num_decoder_layers=2)
    greedy, blocks = (
        TranslationModule(model, pieces, options(protecting, **search))
        for search in ({"beam_size": 1}, {"beam_size": None, "blockwise": True})
    )
    expected = Translator(greedy).translate(marked)
    assert lacking(expected) == []
    assert Translator(blocks).translate(marked) == expected
    signature = greedy.functions()["blockwise"](text=as_bytes(marked))
    assert as_strings(signature["translation"].numpy()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("form", ["shrinking", "staying", "until_full", "until_worse"])
def test_other_beams_put_them_in_too(protecting, marked, form):
    module = TranslationModule(*protecting, options(protecting, beam_size=3, beam_form=form))
    assert lacking(Translator(module).translate(marked)) == []


@pytest.mark.slow
def test_a_saved_model_puts_them_in_by_each_signature(protecting, whole, marked, put_in, tmp_path):
    folder = export(whole, tmp_path / "saved", {"task": "translation"}, marked[:2])
    assert Translator.load(folder).translate(marked) == put_in
    two = Translator.load(folder, beam_size=BEAM, num_hypotheses=2)
    assert two.translate(marked) == put_in
    of_both = (translator.translate_in_detail(marked) for translator in (two, Translator(whole)))
    texts, expected = ([[each.text for each in of_line] for of_line in all_] for all_ in of_both)
    assert texts == expected
    assert lacking(Translator.load(folder, **GREEDY).translate(marked)) == []
    details = Translator.load(folder).translate_in_detail(marked)
    assert [of_line[0].text if of_line else "" for of_line in details] == put_in
    functions = saved_functions(ModelPath.of(folder))
    every = functions["nbest"](text=as_bytes(marked))["translations"]
    assert every.shape == (len(marked), BEAM)
    assert [text.decode() for text in every[:, 0]] == put_in


def test_numpy_puts_them_in_too(whole, marked, put_in, tmp_path):
    pytest.importorskip("tf2onnx")
    folder = portable_export.export(whole, tmp_path / "m", {"task": "translation"}, marked)
    translator = Translator.load(folder)
    assert translator.translate(marked) == put_in
    details = translator.translate_in_detail(marked)
    assert_alike(details, Translator(whole).translate_in_detail(marked), atol=1e-3)
    assert lacking(Translator.load(folder, **GREEDY).translate(marked)) == []
    assert lacking(Translator.load(folder, protect_all=False).translate(marked))
