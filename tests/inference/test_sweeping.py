"""One graph translates by every beam size and length penalty, as release 0.5 did by its own."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.inference.live import Live
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.translation.module import TranslationModule

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5"
OUTPUTS = json.loads((FIXTURE / "outputs.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def module():
    """What release 0.5 trained, whose translations of that time are known."""
    return TranslationModule(*load_trained(RunFolder(FIXTURE / "run")))


def test_one_graph_translates_by_every_beam_and_penalty(module):
    sweep = Live(module, gives_attention=True).sweep
    text = np.array(["", *OUTPUTS["sources"]], dtype=object)

    def swept(beam_size, *alphas):
        texts = sweep(text, np.array([beam_size], np.int32), np.array(alphas, np.float32))
        return [[one.decode() for one in column] for column in texts.numpy().T]

    without, papers, steep = swept(4, 0.0, 0.6, 8.0)
    assert papers == ["", *OUTPUTS["beam_4"]]
    assert len({*map(tuple, (without, papers, steep))}) > 1
    assert sum(map(len, without)) < sum(map(len, steep))
    [greedy] = swept(1, 8.0)
    assert greedy == ["", *OUTPUTS["greedy"]]
    assert sweep.experimental_get_tracing_count() == 1


def test_a_translator_gives_a_list_for_each_line(module, monkeypatch):
    """Lines in any order and batches; a stub in place of the graph spells what it is asked."""

    def spelled(text, beam_size, length_penalties):
        lines = map(bytes.decode, text)
        rows = [
            [f"{line}|{beam_size[0]}|{alpha:g}" for alpha in length_penalties] for line in lines
        ]
        return tf.constant(rows)

    translator = Translator(module)
    monkeypatch.setattr(translator._model, "sweep", spelled)
    done = []
    given = translator.translate_with_penalties(
        ["a b c d e f", "a", "b c"], 4, [0.0, 0.5], batch_tokens=3, report=done.append
    )
    assert given == [[f"{line}|4|0", f"{line}|4|0.5"] for line in ("a b c d e f", "a", "b c")]
    assert sum(done) == 3
