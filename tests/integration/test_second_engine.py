"""CTranslate2 with the same weights: the same log-probabilities, the same translations."""

import json

import numpy as np
import pytest

from keras_transformer.inference.translator import Translator
from pipelines import corpora

RUN = "runs/reverse_words_reversed"
CONVERTED = "saved_models/reverse_words_reversed_ctranslate2"


@pytest.fixture(scope="module")
def shell(toy, tmp_path_factory):
    """A `Shell` in a copy of the toy run's folder, which the export is written into."""
    return toy.copy(tmp_path_factory.mktemp("converted"))


@pytest.fixture(scope="module")
def engine(shell):
    """The exported folder, loaded there; and what a line is there: pieces."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    sentencepiece = pytest.importorskip("sentencepiece")
    exported = shell("export", f"--model_dir={RUN}", "--format=ctranslate2")
    assert exported.returncode == 0, exported.stderr.decode()
    assert f"exported to {CONVERTED}".encode() in exported.stdout
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(shell.folder / CONVERTED / "vocabulary.model")
    )
    return ctranslate2.Translator(str(shell.folder / CONVERTED), compute_type="float32"), pieces


@pytest.fixture(scope="module")
def text(toy):
    description = json.loads((toy.folder / RUN / "model.json").read_text(encoding="utf-8"))
    return corpora.load(**description["corpus"]).test


def translator(toy, beam_size, length_penalty=0.0):
    return Translator.load(toy.folder / RUN, beam_size=beam_size, length_penalty=length_penalty)


def test_log_probabilities_agree(toy, engine, text):
    ctranslate2, pieces = engine
    sides = (
        [pieces.encode(line, out_type=str) for line in side]
        for side in (text.sources, text.targets)
    )
    theirs = [sum(result.log_probs) for result in ctranslate2.score_batch(*sides)]
    ours = translator(toy, 1).score(text.sources, text.targets)
    np.testing.assert_allclose(
        [log_probability for log_probability, _ in ours], theirs, rtol=0, atol=1e-4
    )
    assert [tokens for _, tokens in ours] == [len(pieces.encode(line)) + 1 for line in text.targets]


@pytest.mark.parametrize("beam_size", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_translations_agree(toy, engine, text, beam_size):
    ctranslate2, pieces = engine
    sources = [pieces.encode(line, out_type=str) for line in text.sources]
    results = ctranslate2.translate_batch(
        sources, beam_size=beam_size, length_penalty=0, max_decoding_length=100
    )
    theirs = [pieces.decode(result.hypotheses[0]) for result in results]
    ours = translator(toy, beam_size).translate(text.sources)
    assert sum(a == b for a, b in zip(ours, theirs, strict=True)) >= 0.99 * len(ours)
    assert len(set(ours)) > len(ours) / 2


def test_what_is_there_is_not_overwritten(shell, engine):
    again = shell("export", f"--model_dir={RUN}", "--format=ctranslate2")
    assert again.returncode == 1
    assert again.stderr.startswith(f"error: {CONVERTED} exists.".encode())
    assert again.stderr.count(b"\n") == 1
