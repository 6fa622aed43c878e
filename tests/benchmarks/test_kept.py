"""What was kept with other settings is not taken for what is asked."""

import pytest

from benchmarks.tables import keep_settings, refuse_others


def test_equal_settings_are_taken():
    refuse_others("results.json", {"beam": 4}, {"beam": 4})


def test_each_setting_that_differs_is_named():
    with pytest.raises(SystemExit, match=r"^results was made with beam=4, not 1; seed=None, not 2"):
        refuse_others("results", {"beam": 4, "rate": 1}, {"beam": 1, "rate": 1, "seed": 2})


def test_a_folder_keeps_the_settings_that_it_was_begun_with(tmp_path):
    folder = tmp_path / "run"
    keep_settings(folder, {"rate": 0.1})
    # Nothing lies there yet: the training had a flag that is none.
    keep_settings(folder, {"rate": 0.3})
    folder.mkdir()
    (folder / "score.json").write_text("{}")
    keep_settings(folder, {"rate": 0.3})
    with pytest.raises(SystemExit, match=r"made with rate=0\.3, not 0\.1"):
        keep_settings(folder, {"rate": 0.1})


def test_results_of_unknown_settings_are_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "score.json").write_text("{}")
    with pytest.raises(SystemExit, match="unknown settings"):
        keep_settings(tmp_path / "run", {"rate": 0.1})
