"""A translator of word pieces leaves in every format, which cuts raw text as the live one does."""

import numpy as np
import pytest
import sentencepiece
from checks_here import checks_here
from drawn_models import drawn
from eager import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import portable_export
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.vocabularies import vocabulary

LINES = ["babe abe  be", "", "Größe ba漢<é", "ebabeba 12..."]
RUNTIMES = {"onnx": "tf2onnx", "litert": "ai_edge_litert"}


@pytest.fixture(scope="module")
def pieces():
    random = np.random.default_rng(1)
    words = ["".join(random.choice(["ba", "be", "eba"], 3)) for _ in range(300)]
    return vocabulary.learn([" ".join(words)], 290, model_type="word_piece")


@pytest.fixture(scope="module")
def model(pieces):
    return drawn(vocabulary_size=pieces.size)


@pytest.fixture(scope="module")
def module(model, pieces):
    options = DecodingOptions(beam_size=1, max_length=9, min_length=1)
    return TranslationModule(model, pieces, options)


@pytest.fixture(scope="module")
def expected(module):
    with eagerly():
        return Translator(module).translate(LINES)


@pytest.mark.slow
def test_a_saved_model_takes_raw_strings(module, expected, tmp_path):
    with checks_here():
        export(module, tmp_path / "m", {}, LINES)
    assert Translator.load(tmp_path / "m").translate(LINES) == expected
    assert len(set(expected)) > 2


@pytest.mark.parametrize("form", list(RUNTIMES))
def test_a_folder_of_graphs_gives_the_same(module, expected, form, tmp_path):
    pytest.importorskip(RUNTIMES[form])
    described = {"task": "translation", "corpus": {"source_language": "a", "target_language": "b"}}
    folder = portable_export.export(module, tmp_path / "m", described, LINES[:1], form=form)
    assert Translator.load(folder).translate(LINES) == expected


def test_ctranslate2_gives_the_same(model, pieces, expected, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    folder = ctranslate2_model.convert(model, pieces, tmp_path / "c", {})
    cut = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    lines = [line for line in LINES if line]
    results = engine.translate_batch(
        cut.encode(lines, out_type=str), beam_size=1, max_decoding_length=8
    )
    found = [cut.decode(one.hypotheses[0]) for one in results]
    assert found == [text for line, text in zip(LINES, expected, strict=True) if line]
