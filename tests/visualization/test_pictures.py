"""What a picture asks of a model, and what it refuses, before anything is drawn."""

import json
import types

import numpy as np
import pytest

from keras_transformer.evaluation.options import Files
from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.inference.translator import Translator
from keras_transformer.runs import model_path
from keras_transformer.tasks import text_task
from keras_transformer.visualization.attended import Attended
from keras_transformer.visualization.attention_pictures import Matrix
from keras_transformer.visualization.model_reading import run_of_pairs, trained_model
from keras_transformer.visualize import PICTURES, PictureChoice
from pipelines.options import settings


@pytest.fixture(autouse=True)
def of_two_stacks(monkeypatch):
    monkeypatch.setattr(text_task, "attend_of", lambda model: None)


@pytest.mark.parametrize("name", ["attention", "head", "alignment"])
def test_the_sentence_is_translated_as_the_flags_say(name, monkeypatch):
    class Loaded(Exception):
        pass

    def load(path, **options):
        raise Loaded(path, options)

    monkeypatch.setattr(Translator, "load", load)
    options = {"constrained": True, "beam_size": 2}
    with pytest.raises(Loaded) as raised:
        PICTURES[name](line="a b").measure("m", options)
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
    monkeypatch.setattr(model_path, "description_of", lambda model: kept)
    with pytest.raises(Loaded) as raised:
        PICTURES["n_best"](line="a b").measure("m", options)
    assert raised.value.args == ({"num_hypotheses": count, **options},)


def test_an_alignment_is_of_a_translator_s_attention_to_the_source(monkeypatch):
    with pytest.raises(ValueError, match=r"Received: --stack=encoder\. Leave it out, or"):
        Matrix(line="a b", stack="encoder").measure("m", {})
    found = Attended("decoder", ["a"], ["a"], np.ones((1, 1, 1, 1)))
    monkeypatch.setattr(Matrix, "attended", lambda *_: found)
    with pytest.raises(ValueError) as raised:
        Matrix(line="a b").measure("m", {})
    assert "--stack" not in str(raised.value)
    assert str(raised.value).endswith(
        "Received: m, which has the self-attention of the decoder alone. Try --picture=attention."
    )


def test_a_model_without_a_test_split_is_drawn_of_a_file(monkeypatch):
    monkeypatch.setattr(PictureClassifier, "load", lambda model: types.SimpleNamespace())
    description = {"hyperparameters": {"channels": 1}}
    monkeypatch.setattr(model_path, "description_of", lambda model: description)
    with pytest.raises(ValueError, match=r"^vit does not say what pictures .* one by --png=FILE\."):
        PICTURES["patches"]().measure("vit", {})


@pytest.mark.parametrize("task", ["image_classification", "language_modelling"])
def test_a_run_of_another_task_is_refused(task, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"task": task}))
    for read in (run_of_pairs, trained_model):
        with pytest.raises(ValueError, match=rf"^--picture=positions needs .* of the task {task}"):
            read(str(tmp_path), "positions")
    (tmp_path / "model.json").write_text(json.dumps({"task": "parsing"}))
    assert run_of_pairs(str(tmp_path), "lengths").path == tmp_path


def test_all_pictures_are_told_by_name():
    told = settings(PictureChoice)["picture"].setting.help
    assert "attention: Maps of all layers and heads. head: Heads of one layer" in told
    assert all(f"{name}: " in told for name in PICTURES)


def test_an_option_is_for_the_pictures_whose_class_has_it():
    for kind in PICTURES.values():
        for name, one in settings(kind).items():
            # Files of sentences are other commands' too.
            if name in settings(Files):
                continue
            wanted = [picture for picture, other in PICTURES.items() if name in settings(other)]
            assert {picture: [*of] for picture, of in one.setting.only.items()} == {
                "picture": wanted
            }, name
