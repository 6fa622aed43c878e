"""What a picture asks of a model, and what it refuses, before anything is drawn."""

import types

import numpy as np
import pytest

from keras_transformer.inference import loading
from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.inference.translator import Translator
from keras_transformer.visualization import model_reading
from keras_transformer.visualization.attended import Attended
from keras_transformer.visualization.pictures import PICTURES

OF_A_LINE = {
    "model": "m",
    "attend_of": lambda model: None,
    "line": "a b",
    "translation": None,
    "stack": None,
    "pieces": False,
    "layer": None,
    "heads": [],
    "from_word": None,
}


@pytest.mark.parametrize("name", ["attention", "head", "alignment"])
def test_the_sentence_is_translated_as_the_flags_say(name, monkeypatch):
    class Loaded(Exception):
        pass

    def load(path, **options):
        raise Loaded(path, options)

    monkeypatch.setattr(Translator, "load", load)
    options = {"constrained": True, "beam_size": 2}
    with pytest.raises(Loaded) as raised:
        PICTURES[name](**OF_A_LINE, options=options)
    assert raised.value.args == ("m", options)


@pytest.mark.parametrize(
    ("kept", "options", "count"),
    [
        ({}, {}, 4),
        ({"decoding": {"beam_size": 2}}, {}, 2),
        ({"decoding": {"beam_size": 2}}, {"beam_size": 3}, 3),
        ({"decoding": {"beam_size": 2}}, {"samples": 5}, 5),
        ({"decoding": {"beam_size": 2}}, {"num_hypotheses": 1}, 1),
    ],
)
def test_the_tree_has_all_hypotheses_of_the_search(kept, options, count, monkeypatch):
    class Loaded(Exception):
        pass

    def load(path, **options):
        raise Loaded(options)

    monkeypatch.setattr(Translator, "load", load)
    monkeypatch.setattr(loading, "description_of", lambda model: kept)
    with pytest.raises(Loaded) as raised:
        PICTURES["n_best"](**OF_A_LINE, options=options)
    assert raised.value.args == ({"num_hypotheses": count, **options},)


def test_an_alignment_is_of_a_translator_s_attention_to_the_source(monkeypatch):
    given = {**OF_A_LINE, "options": {}}
    with pytest.raises(ValueError, match=r"Received: --stack=encoder\. Leave it out, or"):
        PICTURES["alignment"](**{**given, "stack": "encoder"})
    found = Attended("decoder", ["a"], ["a"], np.ones((1, 1, 1, 1)))
    monkeypatch.setattr(model_reading, "attended_by", lambda *_: found)
    with pytest.raises(ValueError) as raised:
        PICTURES["alignment"](**given)
    assert "--stack" not in str(raised.value)
    assert str(raised.value).endswith(
        "Received: m, which has the self-attention of the decoder alone. Try --picture=attention."
    )


def test_a_model_without_a_test_split_is_drawn_of_a_file(monkeypatch):
    monkeypatch.setattr(PictureClassifier, "load", lambda model: types.SimpleNamespace())
    description = {"hyperparameters": {"channels": 1}}
    monkeypatch.setattr(loading, "description_of", lambda model: description)
    with pytest.raises(ValueError, match=r"^vit does not say what pictures .* one by --png=FILE\."):
        PICTURES["patches"](model="vit", png=None)
