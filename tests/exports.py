"""Exports in tests: they check themselves in this process, and CTranslate2 answers as they do."""

import contextlib
import io
import json

import pytest
import sentencepiece

from keras_transformer.saved_models import ctranslate2_model, self_check
from pipelines import vocabularies


def report_here(folder):
    """What `self_check.report` gives."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        self_check.main(folder)
    return json.loads(printed.getvalue())


@contextlib.contextmanager
def checks_here():
    """Let exports check themselves in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "report", report_here)
        yield


def answers(folder, model, vocabulary, lines, references):
    """Log P of the references, and greedy translations of at most 8 pieces."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    ctranslate2_model.convert(model, vocabulary, folder, {})
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        for name in vocabularies.FILES[vocabulary.kind]
    )
    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    sides = (source.encode(lines, out_type=str), target.encode(references, out_type=str))
    scores = [sum(result.log_probs) for result in engine.score_batch(*sides)]
    results = engine.translate_batch(sides[0], beam_size=1, max_decoding_length=8)
    return scores, [target.decode(result.hypotheses[0]) for result in results]
