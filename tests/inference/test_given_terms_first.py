"""Of what a beam keeps, the hypothesis with the most of the given terms comes first: live, in a
SavedModel and in NumPy.
"""

import pytest
from drawn_models import drawn

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import portable_export
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import corpora, vocabularies
from pipelines.glossary import Glossary
from pipelines.special_ids import EOS
from pipelines.vocabularies.protected_spans import ProtectedSpans

BEAM = 6
LETTERS = {*"abcdefgh"}
TERMS = {"a": "c", "b": "f", "c": "d", "d": "(\\E", "e": "h"}
TEXTS = ["a b c d", "", "d d", "e a c d f g", "b", "f g", "h h h h a", "e c a"]


def options(made, **given):
    """A model with drawn weights writes one letter or two again and again: it writes each once."""
    pieces = enumerate(made[1].pieces)
    barred = tuple(place for place, one in pieces if place > EOS and one.strip("▁") not in LETTERS)
    rules = {"no_repeat_ngram_size": 1, "barred": barred}
    return DecodingOptions(beam_size=BEAM, max_length=7, min_length=4, **rules, **given)


@pytest.fixture(scope="module")
def made():
    text = corpora.load("reverse", source_language="a", target_language="b").train
    protected = ProtectedSpans(glossary_rate=0.1)
    pieces = vocabularies.learn(text.sources, text.targets, "joint", 340, protected=protected)
    return drawn(vocabulary_size=pieces.size), pieces


@pytest.fixture(scope="module")
def lines(made):
    glossary = Glossary(TERMS, made[1].protected)
    return [glossary.applied(text) for text in TEXTS]


@pytest.fixture(scope="module")
def expected(made, lines):
    """All hypotheses of each line, best first, by Python."""
    module = TranslationModule(*made, options(made, num_hypotheses=BEAM))
    found = []
    for text, of_line in zip(TEXTS, Translator(module).translate_in_detail(lines), strict=True):
        given = [translation for term, translation in TERMS.items() if term in text.split()]
        by_score = sorted(of_line, key=lambda one: one.score, reverse=True)
        most = [sum(one in each.text for one in given) for each in by_score]
        order = sorted(range(len(by_score)), key=lambda place: (-most[place], place))
        found.append([by_score[place].text for place in order])
    return found


@pytest.fixture(scope="module")
def best(expected):
    return [of_line[0] if text else "" for text, of_line in zip(TEXTS, expected, strict=True)]


def test_a_run_gives_the_most_terms_first(made, lines, best):
    translator = Translator(TranslationModule(*made, options(made)))
    assert translator.translate(lines) == best
    assert [translator.translate([line])[0] for line in lines] == best


@pytest.mark.slow
def test_a_saved_model_gives_them_too(made, lines, best, expected, tmp_path):
    module = TranslationModule(*made, options(made))
    folder = export(module, tmp_path / "saved", {"task": "translation"}, lines[:2])
    assert Translator.load(folder).translate(lines) == best
    two = Translator.load(folder, num_hypotheses=2).translate_in_detail(lines)
    assert [[one.text for one in of_line] for of_line in two] == [one[:2] for one in expected]


def test_numpy_gives_them_too(made, lines, expected, tmp_path):
    pytest.importorskip("tf2onnx")
    module = TranslationModule(*made, options(made, num_hypotheses=2))
    folder = portable_export.export(module, tmp_path / "m", {"task": "translation"}, lines[:2])
    found = Translator.load(folder).translate_in_detail(lines)
    assert [[one.text for one in of_line] for of_line in found] == [one[:2] for one in expected]


def test_control_the_score_alone_gives_others(made, lines, expected, monkeypatch):
    module = TranslationModule(*made, options(made))
    monkeypatch.setattr(module, "_learned_terms", False)
    alone = Translator(module).translate(lines)
    differ = [one != of_line[0] for one, of_line in zip(alone, expected, strict=True)]
    assert sum(differ) >= 2
    assert not differ[TEXTS.index("f g")]
