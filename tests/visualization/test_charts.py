"""Learning rates, histories of runs, maps of positions, and what a picture reads of a model."""

import json
import types
from unittest import mock

import numpy as np
import pytest
from drawn_models import random_model
from oracles import paper

from keras_transformer.evaluation.options import Files
from keras_transformer.flags.recipes import recipe
from keras_transformer.inference.picture_classifier import PictureClassifier
from keras_transformer.inference.translator import Translator
from keras_transformer.models.variants import POSITIONS
from keras_transformer.runs import model_path
from keras_transformer.tasks import text_task
from keras_transformer.visualization.attended import Attended
from keras_transformer.visualization.attention_pictures import Matrix
from keras_transformer.visualization.charts import learning_rates, names_of, panels, read_history
from keras_transformer.visualization.model_reading import run_of_pairs, trained_model
from keras_transformer.visualization.position_maps import maps_of
from keras_transformer.visualize import PICTURES, PictureChoice
from pipelines.options import settings

PAPER = {"name": "transformer", "d_model": 512, "warmup_steps": 400, "scale": 1.0, "peak": None}
PAPER["total_steps"] = 10**5


def test_the_curve_is_the_paper_s_and_has_its_corner():
    steps, rates = learning_rates({"a": PAPER}).series["a"]
    expected = [512**-0.5 * min(step**-0.5, step * 400**-1.5) for step in steps]
    assert rates == pytest.approx(expected, rel=1e-5)
    assert 400 in steps
    assert (steps[0], steps[-1]) == (1, 4000)
    assert max(rates) == rates[steps.index(400)]


def test_all_recipes_are_measured_at_the_same_steps():
    recipes = {"a": PAPER, "b": {**PAPER, "name": "constant", "peak": 0.1, "warmup_steps": 70}}
    panel = learning_rates(recipes, 500)
    assert panel.series["a"][0] == panel.series["b"][0]
    assert {70, 400, 500} <= set(panel.series["a"][0])
    assert panel.series["b"][1][-1] == pytest.approx(0.1)


def test_a_recipe_is_a_flag_file_with_flags_behind_it():
    base = recipe("base.flags")
    assert (base["d_model"], base["warmup_steps"], base["schedule"]) == (512, 4000, "transformer")
    changed = recipe("base.flags --warmup_steps=8000 --schedule=cosine")
    different = {name for name in base if base[name] != changed[name]}
    assert different == {"warmup_steps", "schedule"}
    # The recipes read before have not changed.
    assert recipe("base.flags") == base
    assert recipe("--warmup_steps=7")["warmup_steps"] == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none.flags", "neither in the working folder nor one of the package's own"),
        ("base.flags --warmup=3", "base.flags --warmup=3: .*warmup"),
        ("--warmup_steps=0", "--warmup_steps=0: .*an integer, at least 1"),
    ],
)
def test_a_wrong_recipe_is_refused(text, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        recipe(text)


def test_no_recipe_is_refused():
    with pytest.raises(ValueError, match=r"^`schedules` must be a list of 1 or more\."):
        PICTURES["learning_rate"](schedules=())


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "model.json").write_text("{}")
    return folder


def test_a_missing_run_or_history_is_refused(run):
    with pytest.raises(FileNotFoundError, match=r"there is no model at .*nowhere"):
        read_history(run / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"holds no trained model: there is no model.json"):
        read_history(run.parent)
    with pytest.raises(FileNotFoundError, match=r"has no history.jsonl yet: .* Train on"):
        read_history(run)


def test_a_measure_has_a_panel_and_a_run_a_series():
    histories = {
        "a": [{"step": 1, "loss": 5.0, "val_bleu": 2.0}, {"step": 2, "loss": 4.0, "val_bleu": 3.0}],
        "b": [{"step": 7, "loss": 1.0}],
    }
    loss, bleu = panels(histories)
    assert loss.series == {"a": ((1, 2), (5.0, 4.0)), "b": ((7,), (1.0,))}
    assert bleu.series == {"a": ((1, 2), (2.0, 3.0))}
    with pytest.raises(ValueError, match="the histories of c hold none of loss, val_cross_entropy"):
        panels({"c": [{"step": 1, "f1": 3}]})


def test_a_classifier_shows_its_accuracy_and_a_parser_its_f1():
    classifier = [{"step": 1, "val_accuracy": 0.5}]
    parser = [{"step": 1, "val_accuracy": 0.2, "val_f1": 40.0}]
    translator = [{"step": 1, "val_accuracy": 0.1, "val_bleu": 3.0}]
    bleu, f1, accuracy = panels({"c": classifier, "p": parser, "t": translator})
    assert bleu.series == {"t": ((1,), (3.0,))}
    assert f1.series == {"p": ((1,), (40.0,))}
    assert accuracy.series == {"c": ((1,), (0.5,))}


def test_an_epoch_that_a_limit_cut_short_is_left_out():
    history = [{"step": step, "loss": 1.0} for step in (100, 200, 209)]
    assert panels({"a": history})[0].series == {"a": ((100, 200), (1.0, 1.0))}
    # A control: half an epoch counts, and so does the only one.
    history[-1]["step"] = 250
    assert panels({"a": history})[0].series["a"][0] == (100, 200, 250)
    assert panels({"a": history[:1]})[0].series["a"][0] == (100,)


def test_runs_are_called_by_their_folders_unless_two_have_one_name():
    assert names_of(["runs/a", "runs/b/"]) == ["a", "b"]
    assert names_of(["x/a", "y/a"]) == ["x/a", "y/a"]


def test_damaged_lines_and_voided_epochs_are_left_out(run):
    """Training was killed after step 20 and resumed from step 10; a cut line hides no other."""
    history = [{"step": 10, "loss": 3.0}, {"step": 15, "loss": 2.5}, {"step": 30, "loss": 1.0}]
    first, second, third = map(json.dumps, history)
    lines = [first, '{"step": 20, "loss": 2.0}', "", f'{{"step": 20, "lo{second}', "x", third]
    (run / "history.jsonl").write_text("\n".join([*lines, '{"step": 1e999}', '{"step": 40, "l']))
    assert read_history(run) == history
    (run / "history.jsonl").write_bytes(b"\xff\n{}\n")
    with pytest.raises(ValueError, match=r"history\.jsonl must hold a line of JSON for each epoch"):
        read_history(run)


# How models encode positions, as numbers.


def test_sinusoids_are_the_paper_s():
    encoding, products = maps_of(random_model(), 9)
    table = paper.sinusoidal_positions(range(9), 16)
    np.testing.assert_allclose(encoding.values, table, atol=1e-6)
    np.testing.assert_allclose(products.values, np.array(table) @ np.transpose(table), atol=1e-5)


def test_source_and_target_have_a_map_each_if_their_embeddings_are_separate():
    model = random_model(positions="learned", max_positions=12, tie_embeddings="decoder")
    encodings = maps_of(model, 9)[::2]
    expected = ["encoding in source_embedding", "encoding in embedding"]
    assert [encoding.title for encoding in encodings] == expected
    for shown, embedding in zip(encodings, (model.source_embedding, model.embedding), strict=True):
        np.testing.assert_allclose(shown.values, embedding.encoding.table.numpy()[:9], atol=1e-6)


def test_relative_positions_are_biases_by_distance():
    model = random_model(positions="relative")
    encoder, decoder = maps_of(model, 9)
    assert (encoder.first_column, encoder.values.shape) == (-4, (2, 9))
    bias = model.encoder.layers[0].self_attention.heads.positions.bias.numpy()
    # Distances below 8 have a bucket each, and those behind the query the second half.
    buckets = [4, 3, 2, 1, 0, 17, 18, 19, 20]
    np.testing.assert_allclose(encoder.values, bias[:, buckets])
    bias = model.decoder.layers[0].self_attention.heads.positions.bias.numpy()
    # The decoder sees what lies behind, in exact buckets up to a distance of 15.
    assert decoder.first_column == -8
    np.testing.assert_allclose(decoder.values, bias[:, [8, 7, 6, 5, 4, 3, 2, 1, 0]])


def test_shaw_s_positions_are_vectors_by_distance():
    model = random_model(positions="shaw")
    encoder, decoder = maps_of(model, 9)
    keys = model.encoder.layers[0].self_attention.heads.positions.keys.numpy()
    assert encoder.first_column == decoder.first_column == -16
    np.testing.assert_array_equal(encoder.values, keys.T)
    keys = model.decoder.layers[0].self_attention.heads.positions.keys.numpy()
    np.testing.assert_array_equal(decoder.values, keys[:17].T)


def test_the_map_of_rotary_positions_has_the_products_of_rotated_vectors():
    model = random_model(positions="rotary")
    [products] = maps_of(model, 9)
    positions = model.decoder.layers[0].self_attention.heads.positions
    for pair in range(4):
        x = np.zeros((1, 1, 9, 8), np.float32)
        x[..., 2 * pair] = 1
        turned = np.array(positions.placed(x))[0, 0]
        np.testing.assert_allclose(products.values[pair], turned @ turned[0], atol=1e-6)


def test_all_positions_have_maps_and_a_model_without_positions_is_refused():
    for positions in {*POSITIONS} - {"none"}:
        assert maps_of(random_model(positions=positions), 9), positions
    with pytest.raises(ValueError, match="the model knows no positions"):
        maps_of(random_model(positions="none"))


# What a picture reads of a model, and what it refuses, before anything is drawn.
@pytest.fixture
def load(monkeypatch):
    """Fails, in place of loading what translates a sentence."""
    load = mock.Mock(side_effect=ZeroDivisionError)
    monkeypatch.setattr(Translator, "load", load)
    monkeypatch.setattr(text_task, "attend_of", lambda model: None)
    return load


@pytest.mark.parametrize("name", ["attention", "head", "alignment"])
def test_the_sentence_is_translated_as_the_flags_say(name, load):
    options = {"constrained": True, "beam_size": 2}
    with pytest.raises(ZeroDivisionError):
        PICTURES[name](line="a b").measure("m", options)
    load.assert_called_once_with("m", **options)


@pytest.mark.parametrize(
    ("description", "options", "count"),
    [
        ({}, {}, 4),
        ({"decoding": {"beam_size": 2}}, {}, 2),
        ({"decoding": {"beam_size": 2}}, {"beam_size": 3}, 3),
        ({"decoding": {"beam_size": 2}}, {"samples": 5}, 5),
        ({"decoding": {"beam_size": 2}}, {"num_hypotheses": 1}, 1),
    ],
)
def test_the_tree_has_all_hypotheses_of_the_search(description, options, count, load, monkeypatch):
    path = types.SimpleNamespace(version=None, is_portable=False, describe=lambda: description)
    monkeypatch.setattr(model_path.ModelPath, "listed", lambda model: [path])
    with pytest.raises(ZeroDivisionError):
        PICTURES["n_best"](line="a b").measure("m", options)
    load.assert_called_once_with("m", **{"num_hypotheses": count, **options})


def test_a_line_without_a_visible_character_has_no_tree(monkeypatch, tmp_path):
    (tmp_path / "model.json").write_text("{}")
    answers = types.SimpleNamespace(translate_in_detail=lambda lines: [[]])
    monkeypatch.setattr(Translator, "load", lambda model, **options: answers)
    with pytest.raises(ValueError, match="has no visible character, and no translation"):
        PICTURES["n_best"](line="\u200b").measure(str(tmp_path), {})


@pytest.mark.parametrize("graph", ["saved_model.pb", "decoder.onnx"])
def test_the_tree_of_an_export_is_refused(graph, tmp_path):
    (tmp_path / graph).touch()
    # An export describes all options of its search.
    (tmp_path / "model.json").write_text('{"decoding": {"beam_size": 4, "repetition_penalty": 1}}')
    with pytest.raises(ValueError, match="--picture=n_best needs the pieces of several hypotheses"):
        PICTURES["n_best"](line="a b").measure(str(tmp_path), {})


def test_an_ensemble_has_no_single_stack(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    assert text_task.attend_of(f"{tmp_path / 'a'},{tmp_path / 'b'}") is None


def test_an_alignment_is_of_a_translator_s_attention_to_the_source(monkeypatch):
    monkeypatch.setattr(text_task, "attend_of", lambda model: None)
    with pytest.raises(ValueError, match=r"Received: --stack=encoder\. Leave it out, or"):
        Matrix(line="a b", stack="encoder").measure("m", {})
    attended = Attended("decoder", ["a"], ["a"], np.ones((1, 1, 1, 1)))
    monkeypatch.setattr(Matrix, "attended", lambda *_: attended)
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
        with pytest.raises(ValueError, match=rf"^--picture=positions: .* of the task {task}\. Try"):
            read(str(tmp_path), "positions")
    (tmp_path / "model.json").write_text(json.dumps({"task": "parsing"}))
    assert run_of_pairs(str(tmp_path), "lengths").path == tmp_path


def test_lengths_of_an_imported_model_are_not_known(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"task": "translation", "imported": {}}))
    with pytest.raises(ValueError, match="does not say what it was trained on: pass a run"):
        PICTURES["lengths"]().measure(str(tmp_path), {})


def test_the_help_describes_each_picture():
    text = settings(PictureChoice)["picture"].setting.help
    assert "attention: Maps of all layers and heads. head: Heads of one layer" in text
    assert all(f"{name}: " in text for name in PICTURES)


def test_an_option_is_for_the_pictures_whose_class_has_it():
    for kind in PICTURES.values():
        for name, option in settings(kind).items():
            # Other commands have the files of sentences too.
            if name in settings(Files):
                continue
            pictures = [picture for picture, owner in PICTURES.items() if name in settings(owner)]
            only = {flag: [*values] for flag, values in option.setting.only.items()}
            assert only == {"picture": pictures}, name
