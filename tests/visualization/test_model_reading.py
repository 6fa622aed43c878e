"""Which runs pictures of pairs of sentences are drawn of."""

import json

import pytest

from keras_transformer.visualization.model_reading import run_of_pairs, trained_model


@pytest.mark.parametrize("task", ["image_classification", "language_modelling"])
def test_a_run_of_another_task_is_refused(task, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"task": task}))
    for read in (run_of_pairs, trained_model):
        with pytest.raises(ValueError, match=rf"^--picture=positions needs .* of the task {task}"):
            read(str(tmp_path), "positions")
    (tmp_path / "model.json").write_text(json.dumps({"task": "parsing"}))
    assert run_of_pairs(str(tmp_path), "lengths").path == tmp_path
