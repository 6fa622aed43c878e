"""A translator whose languages have a vocabulary each: one reads the source, the other writes,
scores and shows the target. And one of word pieces. Every export format of both cuts raw text as
the live translator does.
"""

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from checks_here import checks_here
from drawn_models import random_model
from eager import eagerly
from second_engine import answers

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import portable_export
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.model_path import starting_point
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import vocabularies
from pipelines.special_ids import BOS, EOS
from pipelines.vocabularies import SeparateVocabularies, vocabulary

# By language; each vocabulary lacks the letters of the other language.
LETTERS = ("abcdefgh", "stuvwxyz")
SIZE = 272
LINES = ["a b c d", "d d", "e a b c", "b"]
REFERENCES = ["z y x w", "w", "v x y z z", "y y y"]
GREEDY = DecodingOptions(beam_size=1, max_length=9, min_length=1)


@pytest.fixture(scope="module")
def both():
    random = np.random.default_rng(1)
    sides = ([" ".join(random.choice(list(letters), 9)) for _ in range(300)] for letters in LETTERS)
    return vocabularies.learn(*sides, "separate", SIZE)


@pytest.fixture(scope="module")
def model():
    return random_model(vocabulary_size=SIZE, tie_embeddings="decoder")


@pytest.fixture(scope="module")
def module(model, both):
    options = DecodingOptions(beam_size=2, max_length=9, min_length=1)
    return TranslationModule(model, both, options)


def ids_of(side, line):
    return sentencepiece.SentencePieceProcessor(model_proto=side.model).encode(line)


def log_probability(model, source, target):
    """Log P of a target by the model alone, in float64."""
    logits = model((np.array([source]), np.array([[BOS, *target[:-1]]])))[0]
    logits = np.asarray(logits, np.float64)
    each = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return each[np.arange(len(target)), target].sum()


def scores(module, lines=LINES, references=REFERENCES):
    with eagerly():
        return Translator(module).score(lines, references)


def test_scores_are_those_of_each_sides_own_ids(model, both, module):
    expected = [
        log_probability(model, [*ids_of(both.source, line), EOS], [*ids_of(both.target, text), EOS])
        for line, text in zip(LINES, REFERENCES, strict=True)
    ]
    scored = scores(module)
    np.testing.assert_allclose([score for score, _ in scored], expected, rtol=0, atol=1e-4)
    lengths = [len(ids_of(both.target, reference)) + 1 for reference in REFERENCES]
    assert [tokens for _, tokens in scored] == lengths
    # The control: with the sides swapped the ids differ.
    swapped = TranslationModule(model, SeparateVocabularies(both.target, both.source))
    assert not np.allclose(scores(swapped), scored)


def test_translations_are_text_of_the_target_alone(both, module):
    with eagerly():
        details = Translator(module).translate_in_detail(LINES, ["z y", "", "", ""])
    for best, *_ in details:
        ids = tf.ragged.constant([list(map(both.target.pieces.index, best.pieces))])
        assert best.text == both.target.detokenize(ids).numpy()[0].decode()
    assert details[0][0].text.startswith("z y")


def test_each_side_is_measured_and_shown_by_its_own_pieces(both, module):
    translator = Translator(module)
    with eagerly():
        shown = translator.attention("a b", "z y x")
        foreign = "a" * 800
        lengths = [len(ids_of(side, foreign)) + 1 for side in (both.target, both.source)]
        assert translator._model.target_lengths([foreign]) == lengths[:1]
        assert translator._model.lengths([foreign]) == lengths[1:]
    for name, side, text in (
        ("source_pieces", both.source, "a b"),
        ("target_pieces", both.target, "z y x"),
    ):
        assert shown[name] == [*(side.pieces[number] for number in ids_of(side, text)), "</s>"]


@pytest.mark.slow
def test_a_saved_model_holds_both_and_gives_what_the_live_model_gives(module, both, tmp_path):
    with checks_here():
        version = export(module, tmp_path / "m", {}, LINES)
    exported = Translator.load(tmp_path / "m")
    live = Translator(module)
    assert exported.translate(LINES) == live.translate(LINES)
    np.testing.assert_allclose(exported.score(LINES, REFERENCES), scores(module), atol=1e-4)
    assert exported.align(LINES, REFERENCES) == live.align(LINES, REFERENCES)
    assert exported.translate(LINES[:1], ["z y"]) == live.translate(LINES[:1], ["z y"])
    for text in ("a b c", "z y x", "a" * 50):
        assert exported._model.lengths([text]) == live._model.lengths([text])
        assert exported._model.target_lengths([text]) == live._model.target_lengths([text])
    weights, pieces = starting_point(version)
    assert pieces.fingerprint == both.fingerprint
    assert "weights/source_embedding/table" in weights


@pytest.mark.slow
def test_ctranslate2_with_two_vocabularies_gives_the_same(module, model, both, tmp_path):
    theirs, translations = answers(tmp_path / "c", model, both, LINES, REFERENCES)
    np.testing.assert_allclose([score for score, _ in scores(module)], theirs, rtol=0, atol=1e-3)
    with eagerly():
        assert translations == Translator(TranslationModule(model, both, GREEDY)).translate(LINES)


# A translator of word pieces in every format.
WORDS = ["babe abe  be", "", "Größe ba漢<é", "ebabeba 12..."]
RUNTIMES = {"onnx": "tf2onnx", "litert": "ai_edge_litert"}


@pytest.fixture(scope="module")
def of_word_pieces():
    """A module of word pieces, and its live translations."""
    random = np.random.default_rng(1)
    words = ["".join(random.choice(["ba", "be", "eba"], 3)) for _ in range(300)]
    pieces = vocabulary.learn([" ".join(words)], 290, model_type="word_piece")
    module = TranslationModule(random_model(vocabulary_size=pieces.size), pieces, GREEDY)
    with eagerly():
        return module, Translator(module).translate(WORDS)


@pytest.mark.slow
def test_a_saved_model_of_word_pieces_takes_raw_strings(of_word_pieces, tmp_path):
    module, expected = of_word_pieces
    with checks_here():
        export(module, tmp_path / "m", {}, WORDS)
    assert Translator.load(tmp_path / "m").translate(WORDS) == expected
    assert len(set(expected)) > 2


@pytest.mark.parametrize("form", list(RUNTIMES))
def test_a_folder_of_graphs_gives_the_same_of_word_pieces(of_word_pieces, form, tmp_path):
    pytest.importorskip(RUNTIMES[form])
    module, expected = of_word_pieces
    described = {"task": "translation", "corpus": {"source_language": "a", "target_language": "b"}}
    folder = portable_export.export(module, tmp_path / "m", described, WORDS[:1], form=form)
    assert Translator.load(folder).translate(WORDS) == expected


def test_ctranslate2_gives_the_same_of_word_pieces(of_word_pieces, tmp_path):
    module, expected = of_word_pieces
    lines = [line for line in WORDS if line]
    graphs = (module._graphs.model, module.vocabulary)
    _, translations = answers(tmp_path / "c", *graphs, lines, lines)
    assert translations == [text for line, text in zip(WORDS, expected, strict=True) if line]
